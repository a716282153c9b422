//! What a deployment says about its target: the origin, how to sign in, the keys of its interfaces.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde_json::json;
use ureq::http::uri::Scheme;
use ureq::http::{HeaderName, HeaderValue, Uri};

use super::predicate::Accept;
use super::request::{constant_path, header_is_reserved};

/// Most bytes of an answer's body unless the deployment says otherwise.
const BODY_BYTES_DEFAULT: u64 = 1024 * 1024;
/// The largest limit that a deployment may set.
const BODY_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The HTTP executor's part of a deployment's configuration.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpConfig {
    /// The origin that every request goes to: `http` or `https`, host, port if it is not the scheme's own. No path, no
    /// user name.
    pub target: String,
    /// How to get a session. Without it, requests without a credential carry no session.
    #[serde(default)]
    pub sign_in: Option<SignIn>,
    /// Keys of interfaces that need no session, by the name that bundles use.
    #[serde(default)]
    pub credentials: BTreeMap<String, Credential>,
    /// Most bytes of an answer's body, from 1 to 64 MiB; a longer answer counts as unreadable. Default: 1 MiB.
    #[serde(default = "body_bytes_default")]
    pub max_body_bytes: u64,
}

/// A form that opens a session: it is sent by `POST`, and the cookies of the answer are the session.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignIn {
    /// Path of the form on the target. A redirect to it means that there is no session (any more).
    pub path: String,
    /// The fields of the form.
    pub form: BTreeMap<String, Secret>,
}

/// A header that proves who asks.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Credential {
    /// Name of the header.
    pub header: String,
    /// Its value.
    pub value: Secret,
}

/// A value that is never printed: `{"env": "NAME"}` or `{"value": "…"}`.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Secret {
    /// The environment variable of this name, read when the factory is made.
    Env(String),
    /// The value itself; for values that protect nothing.
    Value(String),
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(_) => f.write_str("Secret(from the environment)"),
            Self::Value(_) => f.write_str("Secret(protected)"),
        }
    }
}

/// Why a deployment's HTTP configuration cannot be used. No value of it is shown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The target is not an origin.
    #[error(
        "`target` must be an origin such as https://clinic.example:8443, without a path and without a user name"
    )]
    Target,
    /// The sign-in path is not a path of the target.
    #[error(
        "`sign_in.path` must be a path on the target that begins with one `/`, without `..`, spaces, `?` and `#`"
    )]
    SignInPath,
    /// The sign-in form has no field.
    #[error("`sign_in.form` must have at least one field")]
    SignInForm,
    /// A credential's header cannot be one.
    #[error("credential `{name}` needs the name of a header that is not part of the protocol itself")]
    CredentialHeader {
        /// The credential.
        name: String,
    },
    /// A credential's value cannot be the value of a header.
    #[error("the value of credential `{name}` must be printable ASCII and not empty")]
    CredentialValue {
        /// The credential.
        name: String,
    },
    /// A secret's environment variable is missing.
    #[error("the environment variable {variable} is not set, or is not Unicode; it holds {purpose}")]
    SecretMissing {
        /// Name of the variable.
        variable: String,
        /// Which member of the configuration needs it.
        purpose: String,
    },
    /// The limit of a body is out of range.
    #[error("`max_body_bytes` must be from 1 to {BODY_BYTES_MAX}")]
    BodyLimit,
}

/// A configuration that was found good, with its secrets at hand.
#[derive(Clone)]
pub(super) struct Deployed {
    pub(super) origin: Origin,
    pub(super) sign_in: Option<SignInForm>,
    pub(super) credentials: BTreeMap<String, Key>,
    pub(super) body_bytes_max: u64,
}

/// See [`SignIn`].
#[derive(Clone)]
pub(super) struct SignInForm {
    pub(super) path: String,
    pub(super) fields: Vec<(String, String)>,
    /// What a sign-in that worked looks like: not an error, and not a way back to the form.
    pub(super) accept: Accept,
}

/// See [`Credential`].
#[derive(Clone)]
pub(super) struct Key {
    pub(super) header: HeaderName,
    pub(super) value: HeaderValue,
}

/// A target in canonical form: lower case, without the scheme's own port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Origin(String);

impl Deployed {
    pub(super) fn new(config: HttpConfig) -> Result<Self, ConfigError> {
        let HttpConfig { target, sign_in, credentials, max_body_bytes } = config;
        if !(1..=BODY_BYTES_MAX).contains(&max_body_bytes) {
            return Err(ConfigError::BodyLimit);
        }
        let origin = Origin::parse(&target).ok_or(ConfigError::Target)?;
        let sign_in = sign_in.map(SignInForm::new).transpose()?;
        let credentials = credentials
            .into_iter()
            .map(|(name, credential)| Key::new(&name, credential).map(|key| (name, key)))
            .collect::<Result<_, _>>()?;
        Ok(Self { origin, sign_in, credentials, body_bytes_max: max_body_bytes })
    }

    /// What must stay the same between a pause and its decision. Secrets may change.
    pub(super) fn fingerprint(&self) -> Vec<u8> {
        let credentials: Vec<_> =
            self.credentials.iter().map(|(name, key)| json!([name, key.header.as_str()])).collect();
        let sign_in = self.sign_in.as_ref().map(|form| form.path.as_str());
        json!({ "credentials": credentials, "sign_in": sign_in, "target": self.origin.0 })
            .to_string()
            .into_bytes()
    }
}

impl SignInForm {
    fn new(sign_in: SignIn) -> Result<Self, ConfigError> {
        let SignIn { path, form } = sign_in;
        if constant_path(&path).is_err() {
            return Err(ConfigError::SignInPath);
        }
        if form.is_empty() {
            return Err(ConfigError::SignInForm);
        }
        let fields = form
            .into_iter()
            .map(|(name, secret)| {
                secret.reveal(|| format!("`sign_in.form.{name}`")).map(|value| (name.clone(), value))
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { path, fields, accept: Accept::any_success() })
    }
}

impl Key {
    fn new(name: &str, credential: Credential) -> Result<Self, ConfigError> {
        let Credential { header, value } = credential;
        let header = HeaderName::from_bytes(header.as_bytes())
            .ok()
            .filter(|header| !header_is_reserved(header))
            .ok_or_else(|| ConfigError::CredentialHeader { name: name.to_owned() })?;
        let value = value.reveal(|| format!("credential `{name}`"))?;
        let mut value = HeaderValue::from_str(&value)
            .ok()
            .filter(|value| !value.is_empty())
            .ok_or_else(|| ConfigError::CredentialValue { name: name.to_owned() })?;
        value.set_sensitive(true);
        Ok(Self { header, value })
    }
}

impl Secret {
    fn reveal(self, purpose: impl FnOnce() -> String) -> Result<String, ConfigError> {
        match self {
            Self::Value(value) => Ok(value),
            Self::Env(variable) => std::env::var(&variable)
                .map_err(|_| ConfigError::SecretMissing { variable, purpose: purpose() }),
        }
    }
}

impl Origin {
    fn parse(text: &str) -> Option<Self> {
        let plain = !text.contains(['@', '#', '?', '\\']) && text.bytes().all(|byte| byte.is_ascii_graphic());
        let uri: Uri = text.parse().ok().filter(|_| plain)?;
        Self::of(&uri).filter(|_| matches!(uri.path(), "" | "/"))
    }

    /// The origin of an absolute address; none for anything else.
    fn of(uri: &Uri) -> Option<Self> {
        let scheme = uri.scheme().filter(|scheme| **scheme == Scheme::HTTP || **scheme == Scheme::HTTPS)?;
        let authority = uri.authority().filter(|authority| !authority.as_str().contains('@'))?;
        let host = authority.host().to_ascii_lowercase();
        if host.is_empty() {
            return None;
        }
        let standard: u16 = if *scheme == Scheme::HTTPS { 443 } else { 80 };
        // A port that does not parse must not become the standard one.
        let port = match authority.as_str().get(authority.host().len()..)? {
            "" => standard,
            port => port.strip_prefix(':')?.parse().ok().filter(|port| *port != 0)?,
        };
        Some(Self(if port == standard {
            format!("{scheme}://{host}")
        } else {
            format!("{scheme}://{host}:{port}")
        }))
    }

    /// The full address of a path on this origin.
    pub(super) fn address(&self, path_and_query: &str) -> String {
        format!("{}{path_and_query}", self.0)
    }

    /// The path and query that a `Location` header leads to; none if it leaves this origin or is none that we follow:
    /// only absolute addresses and absolute paths are.
    pub(super) fn locate(&self, location: &str) -> Option<String> {
        let location = location.split('#').next().unwrap_or_default();
        if location.contains('\\') || !location.bytes().all(|byte| byte.is_ascii_graphic()) {
            return None;
        }
        if location.starts_with('/') && !location.starts_with("//") {
            return Some(location.to_owned());
        }
        let uri: Uri = location.parse().ok()?;
        (Self::of(&uri)? == *self).then(|| match uri.path_and_query() {
            Some(rest) if rest.as_str().starts_with('/') => rest.as_str().to_owned(),
            Some(rest) => format!("/{rest}"),
            None => "/".to_owned(),
        })
    }
}

const fn body_bytes_default() -> u64 {
    BODY_BYTES_DEFAULT
}
