//! Calls that stand in the results of tools, quoted by a model.
