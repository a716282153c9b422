//! Every command: one file per group. This file only parses, chooses, and says how it ends.

pub(crate) mod attention;
pub(crate) mod bundle;
pub(crate) mod cancel;
pub(crate) mod completions;
pub(crate) mod decide;
pub(crate) mod deployment;
pub(crate) mod exit_codes;
pub(crate) mod export;
pub(crate) mod info;
pub(crate) mod man;
pub(crate) mod mockmed;
pub(crate) mod page;
pub(crate) mod parameters;
pub(crate) mod quickstart;
pub(crate) mod render;
pub(crate) mod replay;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod verify;

use std::ffi::OsString;
use std::io::{IsTerminal as _, Read as _};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{CommandFactory as _, FromArgMatches as _};

use crate::Hooks;
use crate::args::{Args, Command};
use crate::context::Cx;
use crate::exit::Exit;
use crate::failure::{Code, Failure};
use crate::limits::Limits;
use crate::output::Output;

/// Runs the program with these arguments.
pub(crate) fn run(arguments: impl Iterator<Item = OsString>, hooks: Hooks) -> Exit {
    quiet_panics();
    let arguments: Vec<OsString> = arguments.collect();
    let (args, home_is_given) = match parse(&arguments) {
        Ok(parsed) => parsed,
        Err(error) => return not_understood(error, arguments.iter().any(|argument| argument == "--json")),
    };
    let out = Output::new(args.global.json);
    if args.global.end_with_stdin {
        end_with_stdin();
    }
    let cx = Cx::new(out, args.global.home, home_is_given, Limits(args.global.limits), hooks);
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| dispatch(&args.command, &cx)));
    let result = ended.unwrap_or_else(|_| {
        Err(Failure::new(
            Code::Internal,
            "opjournal failed; this is a fault of its own",
            "Everything acknowledged is kept. Run `opjournal verify`, and report this with the line above.",
        ))
    });
    match result {
        Ok(exit) => exit,
        Err(failure) => {
            out.failure(&failure);
            failure.exit()
        }
    }
}

/// The arguments, and whether the home was named among them rather than by the environment.
fn parse(arguments: &[OsString]) -> Result<(Args, bool), clap::Error> {
    let matches = Args::command().try_get_matches_from(arguments)?;
    let home_is_given = matches.value_source("home") == Some(ValueSource::CommandLine);
    Ok((Args::from_arg_matches(&matches)?, home_is_given))
}

fn dispatch(command: &Command, cx: &Cx) -> Result<Exit, Failure> {
    match command {
        Command::Quickstart(args) => quickstart::run(args, cx),
        Command::Run(args) => run::run(args, cx),
        Command::Runs(args) => runs::run(args, cx),
        Command::Resume(args) => resume::run(args, cx),
        Command::Cancel(args) => cancel::run(args, cx),
        Command::Attention(args) => attention::run(args, cx),
        Command::Decide(args) => decide::run(args, cx),
        Command::Replay(args) => replay::run(args, cx),
        Command::Verify(args) => verify::run(args, cx),
        Command::Export(args) => export::run(args, cx),
        Command::Bundle(args) => bundle::run(args, cx),
        Command::Info(args) => info::run(args, cx),
        Command::ExitCodes(args) => exit_codes::run(args, cx),
        Command::Mockmed(args) => mockmed::run(args, cx),
        Command::Completions(args) => completions::run(args, cx),
        Command::Man(args) => man::run(args, cx),
    }
}

/// Help and version end well; anything else is a usage error, which names options but never repeats what may be a value.
fn not_understood(error: clap::Error, json: bool) -> Exit {
    let error = without_values(error);
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        // A reader that went away has seen enough.
        let _ = error.print();
        return Exit::Verified;
    }
    if json {
        let text = error.render().to_string();
        let message = match text.lines().next().unwrap_or_default().strip_prefix("error: ") {
            Some(message) => message.to_owned(),
            // Where a command alone is no command, the parser answers with its help.
            None => "the command line is not complete".to_owned(),
        };
        Output::new(true).failure(&Failure::usage(message, "See `opjournal COMMAND --help`."));
    } else {
        let _ = error.print();
    }
    Exit::Usage
}

/// A stray argument may be a part of a parameter's value that the shell has split off, so it is not repeated.
fn without_values(mut error: clap::Error) -> clap::Error {
    let stray = match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(argument))) => !is_option_name(argument),
        _ => false,
    };
    if stray {
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::Suggested);
        error.insert(
            ContextKind::InvalidArg,
            ContextValue::String("(not shown: it may be a value)".to_owned()),
        );
    }
    error
}

fn is_option_name(argument: &str) -> bool {
    argument.strip_prefix("--").is_some_and(|name| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
    })
}

/// A panic says where it happened and nothing else: its text may hold what is protected.
fn quiet_panics() {
    std::panic::set_hook(Box::new(|info| {
        use std::io::Write as _;
        let place = info
            .location()
            .map_or_else(String::new, |place| format!(" at {}:{}", place.file(), place.line()));
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("unnamed");
        // Nobody has to read it.
        let _ = writeln!(std::io::stderr(), "opjournal: internal fault{place} (thread {name})");
    }));
}

/// Ends the process when stdin does: so a child ends with its parent, however that one ends.
fn end_with_stdin() {
    let watch = || {
        let mut stdin = std::io::stdin().lock();
        let mut byte = [0_u8; 64];
        loop {
            match stdin.read(&mut byte) {
                Ok(0) | Err(_) => std::process::exit(i32::from(Exit::Internal.code())),
                Ok(_) => {}
            }
        }
    };
    // Without a thread the process only lives as long as its own work.
    let _ = std::thread::Builder::new().name("opjournal-parent".to_owned()).spawn(watch);
}

/// Whether a person can be asked and can see the question: stdin and stderr are both terminals.
pub(crate) fn person_is_there() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(line: &[&str]) -> String {
        let error = clap::Parser::try_parse_from(line).map(|_: Args| ()).unwrap_err();
        without_values(error).render().to_string()
    }

    #[test]
    fn a_stray_argument_is_not_repeated_and_an_unknown_option_is() {
        let text = refused(&["opjournal", "run", "bundle", "--param", "name=Ada", "CANARY-0815"]);
        assert!(!text.contains("CANARY"), "{text}");
        let text = refused(&["opjournal", "run", "bundle", "-CANARY"]);
        assert!(!text.contains("CANARY"), "{text}");
        let text = refused(&["opjournal", "run", "bundle", "--parms", "x"]);
        assert!(text.contains("--parms"), "{text}");
    }

    #[test]
    fn a_home_counts_as_given_wherever_it_stands_on_the_line() {
        for line in [vec!["opjournal", "--home", "/x", "info"], vec!["opjournal", "info", "--home", "/x"]] {
            let line: Vec<OsString> = line.into_iter().map(OsString::from).collect();
            assert!(parse(&line).unwrap().1, "{line:?}");
        }
        assert!(!parse(&["opjournal", "info"].map(OsString::from)).unwrap().1);
    }

    #[test]
    fn values_of_parameters_are_never_judged_by_the_parser() {
        let line = ["opjournal", "run", "b", "--param", "CANARY-without-an-equals-sign"].map(OsString::from);
        assert!(parse(&line).is_ok(), "a wrong one must be refused by our own words");
    }
}
