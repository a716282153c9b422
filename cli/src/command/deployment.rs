//! Where runs act: the executors of this process, from `--target` or `--config`.

use std::path::{Path, PathBuf};

use engine::service::Deployment;
use engine::service::executor::http::{HttpConfig, HttpFactory};
use serde::Deserialize;

use crate::failure::{Code, Failure};

/// Largest configuration, in bytes.
const CONFIG_BYTES_MAX: u64 = 1 << 20;

/// Where runs act.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct DeploymentArgs {
    /// The application's origin, such as `http://127.0.0.1:8080`; no sign-in, no credentials
    #[arg(long, value_name = "URL", conflicts_with = "config", help_heading = "Deployment")]
    pub(crate) target: Option<String>,

    /// The deployment's configuration: JSON with target, sign-in and credentials
    ///
    /// {"http": {"target": "https://clinic.example",
    ///   "sign_in": {"path": "/sign-in", "form": {"user": {"value": "nurse"}, "password": {"env": "CLINIC_PASSWORD"}}},
    ///   "credentials": {"readback": {"header": "X-Api-Key", "value": {"env": "CLINIC_KEY"}}}}}
    ///
    /// A secret is read from an environment variable with `env`, or stands in the file with `value`.
    #[arg(long, value_name = "FILE", help_heading = "Deployment", verbatim_doc_comment)]
    pub(crate) config: Option<PathBuf>,
}

/// The configuration file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    /// The HTTP executor.
    http: HttpConfig,
}

impl DeploymentArgs {
    /// The executors; none without an option.
    ///
    /// # Errors
    /// `invalid_config`, or why the file cannot be read.
    pub(crate) fn deployment(&self) -> Result<Deployment, Failure> {
        match (&self.target, &self.config) {
            (None, None) => Ok(Deployment::none()),
            (Some(target), _) => {
                let config = serde_json::from_value(serde_json::json!({ "target": target }));
                with_http(config.map_err(|_| Failure::usage("the target is not text", "Give an origin."))?)
            }
            (None, Some(path)) => with_http(read(path)?.http),
        }
    }
}

/// A deployment of one HTTP executor.
///
/// # Errors
/// `invalid_config`.
pub(crate) fn with_http(config: HttpConfig) -> Result<Deployment, Failure> {
    let factory = HttpFactory::new(config).map_err(|error| {
        Failure::new(
            Code::InvalidConfig,
            error.to_string(),
            "Correct the deployment; see `opjournal run --help`.",
        )
    })?;
    Ok(Deployment::none().with("http", factory))
}

fn read(path: &Path) -> Result<Config, Failure> {
    let bytes = read_limited(path, CONFIG_BYTES_MAX, "reading the configuration")?;
    serde_json::from_slice(&bytes).map_err(|error| {
        // Its own text may repeat a secret of the file.
        let problem = match error.classify() {
            serde_json::error::Category::Syntax | serde_json::error::Category::Eof => "is not JSON",
            serde_json::error::Category::Data => "does not have the form of a deployment's configuration",
            serde_json::error::Category::Io => "could not be read",
        };
        Failure::new(
            Code::InvalidConfig,
            format!("the configuration {problem}, at line {} column {}", error.line(), error.column()),
            "See `opjournal run --help` for its form.",
        )
    })
}

/// Reads a file, or stdin for `-`, of at most `limit` bytes.
///
/// # Errors
/// A usage error when it is larger; else as the system gives them, without the path.
pub(crate) fn read_limited(path: &Path, limit: u64, what: &str) -> Result<Vec<u8>, Failure> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().take(limit + 1).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(limit + 1).read_to_end(&mut bytes))
    };
    read.map_err(|error| Failure::io(what, &error))?;
    if bytes.len() as u64 > limit {
        return Err(Failure::usage(format!("{what} failed: it is larger than {limit} bytes"), "Give less."));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_configuration_is_located_and_never_quoted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.json");
        for text in [
            r#"{"http": {"target": "http://x", "credentials": "CANARY"}}"#,
            r#"{"http": {"target": "http://x"}, "CANARY": 1}"#,
            r#"{"http": CANARY}"#,
            r#"{"http": {"target": "ftp://CANARY"}}"#,
            r#"{"http": {"target": "http://x", "credentials": {"k": {"header": "X", "value": {"value": "CANARY\n"}}}}}"#,
        ] {
            std::fs::write(&path, text).unwrap();
            let failure =
                DeploymentArgs { target: None, config: Some(path.clone()) }.deployment().err().unwrap();
            assert_eq!(failure.code(), Code::InvalidConfig, "{text}");
            assert!(!failure.to_json().to_string().contains("CANARY"), "{text}: {failure:?}");
        }
    }

    #[test]
    fn a_file_beyond_its_limit_is_not_read_to_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large");
        std::fs::write(&path, [0; 11]).unwrap();
        assert!(read_limited(&path, 11, "reading").is_ok());
        assert_eq!(read_limited(&path, 10, "reading").unwrap_err().code(), Code::Usage);
    }
}
