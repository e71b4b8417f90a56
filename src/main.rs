//! Builds the world, runs, returns the code.

use std::process::ExitCode;

fn main() -> ExitCode {
    trace();
    match squad::Env::capture() {
        Ok(env) => ExitCode::from(squad::run(env)),
        Err(error) => {
            eprintln!("error: the working directory cannot be used: {error}");
            ExitCode::from(3)
        }
    }
}

/// `SQUAD_LOG=debug` shows on stderr what squad and its engines say to each other: for reports of defects. Without the
/// variable nothing is set up.
fn trace() {
    let level = std::env::var("SQUAD_LOG").ok().and_then(|level| level.parse::<tracing::Level>().ok());
    if let Some(level) = level {
        tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr).init();
    }
}
