mod hostile;
mod http;
mod renewal;
mod scenarios;
mod world;
