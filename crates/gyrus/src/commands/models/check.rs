//! `gyrus models check`

use std::sync::Arc;

use clap::Args;
use gyrus_contract::Model;
use gyrus_models::{
    ContextProbe, Effort, MeasuredModels, Measurements, PictureSource, ProbeFinding, ProbePictures,
};
use gyrus_runtime::request::ModelFlags;

use crate::{
    Gyrus, drive,
    exit::Code,
    failure::Failure,
    keys::KeyLookup,
    measuring::measure,
    model_choice::{self},
    setup,
};
use gyrus_surfaces::{console::Painter, output, projection::Tone};

/// Extent of the probe of `--context`.
const CONTEXT: ContextProbe = ContextProbe {
    most_tokens: 200_000,
    most_requests: 8,
};

/// Try what a model can really do, and remember it for choosing
///
/// Asks it to call a tool, to answer by a schema, to read a picture, to point at five targets on a
/// screen and to choose from a tree: about seven short questions, however long the answers take.
/// What comes of it outweighs what is believed of the model.
#[derive(Args)]
pub(crate) struct ModelCheck {
    /// Models, as in `gyrus run --model` (default: those that a run would ask)
    names: Vec<String>,
    /// Also search for the longest prompt that it takes: some long and dear questions
    #[arg(long)]
    context: bool,
}

impl ModelCheck {
    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        let config = gyrus.config()?;
        let runtime = drive::runtime()?;
        let choice = setup::model_choice(
            &runtime,
            gyrus,
            &config,
            &ModelFlags::named(self.names.clone()),
        )?;
        let config = gyrus.config()?;
        let code = runtime.block_on(async {
            let catalogue = model_choice::catalogue(gyrus)?;
            let keys = KeyLookup::new(&config.keys);
            let pictures: Arc<dyn PictureSource> = Arc::new(ProbePictures::new());
            let mut code = Code::Reached;
            let mut done: Vec<String> = Vec::new();
            for name in choice.names() {
                if name.starts_with("script:") {
                    return Err(Failure::usage("a script knows its replies already")
                        .hint("name a model: gyrus models check PROVIDER/MODEL"));
                }
                for candidate in
                    model_choice::connected(&name, &keys, &catalogue, &pictures).await?
                {
                    let model = candidate.model;
                    if done.iter().any(|one| one == model.name()) {
                        continue;
                    }
                    done.push(model.name().to_owned());
                    let measured = self.measure(gyrus, &*model).await?;
                    if measured.answers == ProbeFinding::Works {
                        let home = gyrus.home()?;
                        home.create_state()?;
                        MeasuredModels::add(&home.state, model.name(), &measured)?;
                    } else {
                        code = Code::ModelUnreachable;
                    }
                }
            }
            Ok(code)
        });
        runtime.shutdown_background();
        code
    }

    async fn measure(&self, gyrus: &Gyrus, model: &dyn Model) -> Result<Measurements, Failure> {
        let plain = gyrus.environment.plain;
        let painter = Painter::new(&output::standard(), plain);
        writeln!(
            output::standard(),
            "{}",
            painter.paint(Tone::Strong, model.name())
        )?;
        let effort = Effort {
            context: self.context.then_some(CONTEXT),
        };
        measure(model, effort, plain, |line| {
            Ok(write!(output::standard(), "{line}")?)
        })
        .await
    }
}
