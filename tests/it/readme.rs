//! Every command the README shows is run.
