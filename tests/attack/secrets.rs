//! Secrets in the spellings that leak, and in the words of people and models.
