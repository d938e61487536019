//! x
use crate::{Gyrus, exit::Code, failure::Failure};
pub(crate) fn play(_: &Gyrus, _: bool, _: bool) -> Result<Code, Failure> {
    todo!()
}
