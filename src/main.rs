//! Builds the world, runs, returns the code.

use std::process::ExitCode;

fn main() -> ExitCode {
    match squad::Env::capture() {
        Ok(env) => ExitCode::from(squad::run(env, squad::Streams::standard())),
        Err(error) => {
            eprintln!("error: the working directory cannot be used: {error}");
            ExitCode::from(3)
        }
    }
}
