//! An environment as a user asks for it: its id, and all that decides what the id means.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value};

use super::{EnvironmentError, EnvironmentSpec};

/// How long an environment may take to be made, unless somebody says otherwise.
const DEFAULT_PATIENCE: Duration = Duration::from_mins(1);

/// What an environment is stepped for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To learn from: what makes that easier may be changed, such as the size of rewards or what ends an episode.
    Training,
    /// To see what is reached in the task as it is.
    Evaluation,
}

/// An environment as a user asks for it.
#[derive(Debug, Clone, PartialEq)]
pub struct EnvironmentRequest {
    /// `CartPole-v1`, or a prefix and what it means there: `gymnasium:HalfCheetah-v5`, `python:my_task:MyTask`.
    pub id: String,
    /// What its constructor is given, as a JSON object.
    pub keyword_arguments: String,
    /// The Python interpreter whose packages it uses; empty for the one that
    /// [`Python::find`](crate::machine::Python::find) finds.
    pub python: String,
    /// Where modules and files of the user's own are searched, in this order.
    pub search_folders: Vec<PathBuf>,
    /// What it is stepped for, which changes games of the Atari 2600 alone.
    pub purpose: Purpose,
    /// Whether it will be asked for pictures: an environment in Python has to know when it is made.
    pub drawn: bool,
    /// How long [`examine`](Self::examine) waits.
    pub patience: Duration,
}

/// What is known of an environment before any is stepped.
#[derive(Debug, Clone, PartialEq)]
pub struct Examined {
    /// What is fixed about it.
    pub spec: EnvironmentSpec,
    /// Names and versions of the software that it runs on, besides this program.
    pub software: Vec<(String, String)>,
    /// What was strange about it when it was tried, though it can be used.
    pub remark: Option<String>,
}

impl EnvironmentRequest {
    /// The environment of that id, without arguments, as it is.
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            keyword_arguments: "{}".into(),
            python: String::new(),
            search_folders: Vec::new(),
            purpose: Purpose::Evaluation,
            drawn: false,
            patience: DEFAULT_PATIENCE,
        }
    }

    /// Whether the id names code, a module or a file of Python, which runs when the environment is made.
    pub fn names_code(&self) -> bool {
        self.id.starts_with("python:") || self.id.strip_prefix("gymnasium:").is_some_and(|task| task.contains(':'))
    }

    /// The same request with the arguments `others`, a JSON object, instead of those of the same names, and beside the rest.
    ///
    /// # Errors
    /// [`EnvironmentError::KeywordArguments`]: `others`, or the arguments of the request, are no JSON object.
    pub fn with_arguments(self, others: &str) -> Result<Self, EnvironmentError> {
        let others = object(others)?;
        if others.is_empty() {
            return Ok(self);
        }
        let mut arguments = self.arguments()?;
        arguments.extend(others);
        Ok(Self { keyword_arguments: Value::Object(arguments).to_string(), ..self })
    }

    /// The keyword arguments, or the refusal of a text that is no JSON object.
    pub(super) fn arguments(&self) -> Result<Map<String, Value>, EnvironmentError> {
        object(&self.keyword_arguments)
    }
}

fn object(text: &str) -> Result<Map<String, Value>, EnvironmentError> {
    serde_json::from_str(text).map_err(|error| EnvironmentError::KeywordArguments { text: text.to_owned(), reason: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keyword_arguments_must_be_an_object_and_go_to_those_who_take_them() {
        let refusal = |arguments: &str| {
            let request = EnvironmentRequest { keyword_arguments: arguments.into(), ..EnvironmentRequest::new("CartPole-v1") };
            request.make().err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert_eq!(refusal(" {} "), "");
        assert!(refusal("[1]").contains("no JSON object"), "{}", refusal("[1]"));
        assert!(refusal("{\"gravity\": 1}").contains("takes no keyword arguments"), "{}", refusal("{\"gravity\": 1}"));
    }

    #[test]
    fn an_id_names_code_where_it_has_a_module_or_a_file() {
        let names_code = |id: &&str| EnvironmentRequest::new(*id).names_code();
        assert!(["python:task:Task", "python:/x/task.py:Task", "gymnasium:tasks:Task-v0", "gymnasium:x.py:Task-v0"].iter().all(names_code));
        assert!(!["CartPole-v1", "gymnasium:CartPole-v1", "gymnasium:ALE/Pong-v5", "atari:Pong-v5"].iter().any(names_code));
    }

    #[test]
    fn other_arguments_replace_those_of_their_names_and_leave_the_rest() {
        let request = EnvironmentRequest { keyword_arguments: r#"{"a": 1, "b": [0.1]}"#.into(), ..EnvironmentRequest::new("python:a:A") };
        let with = |others: &str| request.clone().with_arguments(others).map(|request| request.keyword_arguments);
        assert_eq!(with(r#"{"a": null, "c": "d"}"#).unwrap(), r#"{"a":null,"b":[0.1],"c":"d"}"#);
        assert_eq!(with("{ }").unwrap(), request.keyword_arguments, "as they were written");
        assert!(with("[1]").unwrap_err().to_string().contains("\"[1]\" are no JSON object"));
    }
}
