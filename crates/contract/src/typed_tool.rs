//! Tools whose arguments are a type: the schema for models, the parsing, and the message about
//! wrong arguments come from it.

use std::{future::Future, path::Path};

use schemars::JsonSchema;
use serde::de::{Deserialize as _, DeserializeOwned};
use serde_json::{Map, Value};

use crate::{
    Aim, BoxedFuture, Cleared, Probe, Repeat, ResolvedCall, Site, Tool, ToolCall, ToolOutput,
    ToolSpec, Touch, Unresolvable, schema::description_of, schema_of,
};

/// The arguments of a tool. Their doc comments are the descriptions that models see; they deny
/// unknown fields.
pub trait Arguments: DeserializeOwned + JsonSchema + Send {
    /// The tool's name.
    const TOOL: &'static str;

    /// Valid arguments as JSON, an example in error messages.
    const EXAMPLE: &'static str;

    /// Checks constraints that the type does not express.
    ///
    /// # Errors
    /// Returns the reason, worded for the model, why they are wrong.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    /// Parses arguments. Some models send the object as a string that contains it, or `null` for an
    /// argument that they leave out: both are taken as meant.
    ///
    /// # Errors
    /// Returns an error, worded for the model, when they do not fit the type.
    fn parse(given: &Value) -> Result<Self, WrongArguments> {
        let given = match given {
            Value::String(text) => serde_json::from_str(text),
            other => Map::deserialize(other),
        };
        let parsed = given.and_then(|mut given: Map<String, Value>| {
            given.retain(|_, value| !value.is_null());
            Self::deserialize(Value::Object(given))
        });
        let checked = match parsed {
            Ok(parsed) => parsed.check().map(|()| parsed),
            Err(error) => Err(error.to_string().replacen(" field", " argument", 1)),
        };
        checked.map_err(|reason| WrongArguments {
            tool: Self::TOOL,
            reason,
            example: Self::EXAMPLE,
        })
    }
}

/// The error of arguments that do not fit their tool; the message is for a model.
#[derive(Debug, thiserror::Error)]
#[error("the arguments of `{tool}` are wrong: {reason}. Expected an object like {example}")]
pub struct WrongArguments {
    tool: &'static str,
    pub reason: String,
    example: &'static str,
}

impl From<WrongArguments> for ToolOutput {
    fn from(wrong: WrongArguments) -> Self {
        Self::error(wrong.to_string())
    }
}

/// A tool over typed arguments; [`BuiltIn`] makes a [`Tool`] of it. A tool is one such type, and
/// one line in the table of its crate.
pub trait TypedTool: Send + Sync + 'static {
    type Arguments: Arguments;

    /// The failure of a call, on its way to the model.
    type Failure: Into<ToolOutput> + From<WrongArguments>;

    /// The handling of a call that a crash interrupted.
    const REPEAT: Repeat;

    /// Returns the text for the model: what the tool does and when to use it. By default it is the
    /// doc comment of the arguments.
    fn description(&self) -> String {
        description_of::<Self::Arguments>()
    }

    /// Returns the things that a call may read, change or start.
    fn touches(&self) -> Vec<Touch>;

    /// Executes a call. Paths are those of `call`, which the gate judged, not those of the
    /// arguments.
    fn run(
        &self,
        arguments: Self::Arguments,
        call: &ResolvedCall,
        site: &dyn Site,
    ) -> impl Future<Output = Result<ToolOutput, Self::Failure>> + Send;

    /// See [`Tool::check`].
    ///
    /// # Errors
    /// Returns an error when the call cannot succeed with these arguments.
    fn check(&self, _arguments: &Value) -> Result<(), Unresolvable> {
        Ok(())
    }

    /// See [`Tool::preview`].
    fn preview(&self, _call: &ResolvedCall, _workspace: &Path) -> Option<String> {
        None
    }

    /// See [`Tool::aim`].
    fn aim(
        &self,
        _call: &ToolCall,
    ) -> impl Future<Output = Result<Option<Aim>, Unresolvable>> + Send {
        async { Ok(None) }
    }

    /// See [`Tool::probe`].
    fn probe(&self, _call: &ResolvedCall, _site: &dyn Site) -> impl Future<Output = Probe> + Send {
        async { Probe::Unknown }
    }
}

/// A [`TypedTool`] with its specification.
pub struct BuiltIn<T> {
    tool: T,
    spec: ToolSpec,
}

impl<T: TypedTool> BuiltIn<T> {
    /// Creates the tool with its specification.
    ///
    /// # Panics
    /// Panics in a debug build if the example does not fit the arguments.
    pub fn new(tool: T) -> Self {
        let spec = ToolSpec {
            name: T::Arguments::TOOL.to_owned(),
            description: tool.description(),
            parameters: schema_of::<T::Arguments>(),
            touches: tool.touches(),
            repeat: T::REPEAT,
        };
        debug_assert!(
            serde_json::from_str::<Value>(T::Arguments::EXAMPLE).is_ok_and(|example| {
                spec.misfits(&example).is_empty() && T::Arguments::parse(&example).is_ok()
            }),
            "the example of `{}` does not fit its arguments",
            spec.name
        );
        Self { tool, spec }
    }

    /// Returns the tool with another, recorded description.
    #[must_use]
    pub fn described(mut self, description: String) -> Self {
        self.spec.description = description;
        self
    }
}

impl<T: TypedTool> Tool for BuiltIn<T> {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        call: Cleared<ResolvedCall>,
        site: &'a dyn Site,
    ) -> BoxedFuture<'a, ToolOutput> {
        Box::pin(async move {
            match T::Arguments::parse(&call.arguments) {
                Ok(arguments) => self.tool.run(arguments, &call, site).await,
                Err(wrong) => Err(wrong.into()),
            }
            .unwrap_or_else(Into::into)
        })
    }

    fn check(&self, arguments: &Value) -> Result<(), Unresolvable> {
        self.tool.check(arguments)
    }

    fn preview(&self, call: &ResolvedCall, workspace: &Path) -> Option<String> {
        self.tool.preview(call, workspace)
    }

    fn aim<'a>(&'a self, call: &'a ToolCall) -> BoxedFuture<'a, Result<Option<Aim>, Unresolvable>> {
        Box::pin(self.tool.aim(call))
    }

    fn probe<'a>(&'a self, call: &'a ResolvedCall, site: &'a dyn Site) -> BoxedFuture<'a, Probe> {
        Box::pin(self.tool.probe(call, site))
    }
}
