mod hostile;
mod http;
mod person;
mod renewal;
mod scenarios;
mod world;
