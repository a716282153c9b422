//! `mockmed`: the demonstration clinic. It is a target like any other; no other command knows it.

use std::path::PathBuf;

use serde_json::json;

use crate::context::Cx;
use crate::exit::Exit;
use crate::failure::{Code, Failure};
use crate::mockmed::{self, CONTROL_KEY, Config, Fault, PASSWORD, READBACK_KEY, USER};

/// The demonstration clinic: a small web application with invented patients, to try things on.
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  opjournal mockmed serve --data ./clinic --port 8080
  opjournal mockmed serve --data ./clinic --port 0 --fault timeout_after_save:1"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

/// What to do.
#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Serve it on 127.0.0.1 until the process ends
    ///
    /// Prints the address, the sign-in and the keys. Faults: duplicate_record, false_saved_banner, timeout_after_save,
    /// app_offline, session_expired; each strikes form writes, COUNT times or always.
    Serve {
        /// Its data directory; made when it is not there
        #[arg(long, value_name = "DIR")]
        data: PathBuf,
        /// Port on 127.0.0.1; 0 lets the system choose
        #[arg(long, value_name = "N")]
        port: u16,
        /// Arm a fault at the start; may be repeated
        #[arg(long = "fault", value_name = "NAME[:COUNT]")]
        faults: Vec<Fault>,
    },
}

/// Does it.
pub(crate) fn run(args: &Args, cx: &Cx) -> Result<Exit, Failure> {
    let Command::Serve { data, port, faults } = &args.command;
    let config = Config { data: data.clone(), port: *port, faults: faults.clone(), quiet: cx.out.json() };
    let serving = mockmed::serve(config).map_err(|error| {
        Failure::new(Code::MockMed, error.to_string(), "Choose another port or data directory.")
    })?;
    if cx.out.json() {
        let address = format!("http://{}", serving.addr());
        let greeting = json!({
            "address": address,
            "user": USER,
            "password": PASSWORD,
            "readback_key": READBACK_KEY,
            "control_key": CONTROL_KEY,
        });
        let mut line = cx.out.stream();
        line.json(&greeting)?;
        line.finish()?;
    }
    serving.wait();
    Ok(Exit::Verified)
}
