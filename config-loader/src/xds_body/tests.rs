mod fields;
mod hostile;
mod kubernetes;
mod samples;
mod schema;
mod testing;
