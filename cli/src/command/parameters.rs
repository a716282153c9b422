//! A run's parameters, as the command line gives them. Protected: no message here repeats a value.

use std::path::{Path, PathBuf};

use engine::service::bundle::Bundle;
use protocol::bundle::{MAX_PARAMETERS_BYTES, ParameterType};
use protocol::canonical_json;
use serde_json::{Map, Number, Value};

use super::deployment::read_limited;
use crate::failure::Failure;

/// Where parameters come from.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct ParameterArgs {
    /// Parameters as a JSON object in a file, or `-` for stdin: the way to give protected values
    #[arg(long, value_name = "FILE", help_heading = "Parameters")]
    pub(crate) params: Option<PathBuf>,

    /// One parameter; may be repeated. Other users of this machine can see it in the process list
    ///
    /// The value is read as the type that the bundle declares for it. Prefer `--params` for anything that matters.
    #[arg(long = "param", value_name = "NAME=VALUE", help_heading = "Parameters")]
    pub(crate) param: Vec<String>,
}

impl ParameterArgs {
    /// The parameters as one JSON object, typed as `bundle` declares. What does not fit is left for the engine to refuse.
    ///
    /// # Errors
    /// When the command line or the file is malformed.
    pub(crate) fn read(&self, bundle: &Path) -> Result<Value, Failure> {
        let mut object = match &self.params {
            Some(path) => from_file(path)?,
            None => Map::new(),
        };
        if self.param.is_empty() {
            return Ok(object.into());
        }
        let bundle = Bundle::load(bundle)?;
        for given in &self.param {
            let Some((name, text)) = given.split_once('=') else {
                return Err(Failure::usage("a `--param` has no `=`", "Write `--param NAME=VALUE`."));
            };
            let declared = bundle.workflow.parameters().iter().find(|spec| spec.name == name);
            let value = typed(text, declared.map_or(ParameterType::String, |spec| spec.kind));
            if object.insert(name.to_owned(), value).is_some() {
                return Err(Failure::usage("a parameter is given twice", "Give each parameter once."));
            }
        }
        Ok(object.into())
    }
}

fn from_file(path: &Path) -> Result<Map<String, Value>, Failure> {
    let bytes = read_limited(path, MAX_PARAMETERS_BYTES as u64, "reading the parameters")?;
    let next = "Give one JSON object of parameter names and values.";
    match canonical_json::parse_strict(&bytes, MAX_PARAMETERS_BYTES) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(Failure::usage("the parameters are not a JSON object", next)),
        Err(problem) => {
            Err(Failure::usage(format!("the parameters cannot be read: {}", problem.fault.sentence()), next))
        }
    }
}

/// The text as a value of the type, or as text where it is none: then the engine says what is wrong.
fn typed(text: &str, kind: ParameterType) -> Value {
    match kind {
        ParameterType::String => None,
        ParameterType::Integer | ParameterType::Number => text.parse::<Number>().ok().map(Value::Number),
        ParameterType::Boolean => text.parse::<bool>().ok().map(Value::Bool),
    }
    .unwrap_or_else(|| Value::String(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_becomes_what_the_bundle_declares_and_stays_text_otherwise() {
        for (text, kind, want) in [
            ("12", ParameterType::String, json!("12")),
            ("12", ParameterType::Integer, json!(12)),
            ("-1.5", ParameterType::Number, json!(-1.5)),
            ("true", ParameterType::Boolean, json!(true)),
            ("yes", ParameterType::Boolean, json!("yes")),
            ("12x", ParameterType::Integer, json!("12x")),
            ("", ParameterType::Integer, json!("")),
            (" 1", ParameterType::Integer, json!(" 1")),
        ] {
            assert_eq!(typed(text, kind), want, "{text:?} as {kind}");
        }
    }

    #[test]
    fn malformed_parameters_are_refused_without_being_repeated() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("params.json");
        for text in ["[\"CANARY\"]", "{\"a\": CANARY}", "\"CANARY\"", "{\"a\":1,\"a\":\"CANARY\"}"] {
            std::fs::write(&path, text).unwrap();
            let args = ParameterArgs { params: Some(path.clone()), param: vec![] };
            let failure = args.read(Path::new("unused")).unwrap_err();
            assert_eq!(failure.exit(), crate::exit::Exit::Usage, "{text}");
            assert!(!failure.to_json().to_string().contains("CANARY"), "{failure:?}");
        }
    }
}
