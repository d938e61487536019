//! How entries look to people and programs: projections of the journal, which may rename or leave
//! out but never add a fact.

pub(crate) mod paint;
pub(crate) mod speech;
pub(crate) mod status;
pub(crate) mod line;
pub(crate) mod card;
pub(crate) mod json;
pub(crate) mod trace;
pub(crate) mod html;
