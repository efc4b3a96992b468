mod fields;
mod hostile;
mod samples;
mod schema;
mod testing;
