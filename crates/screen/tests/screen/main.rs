//! The screen against a real browser and pages of our own, on loopback.

mod support;
mod hands;
mod holding;
mod player;
mod looking;
mod profiles;
mod components;
mod parts;
mod picture;
mod oracle;
mod acting;
mod asking;
mod filling;
mod texts;
mod twins;
mod uses;
mod links;
mod rude;
mod settling;
#[cfg(feature = "desktop")]
mod desktop;
#[cfg(feature = "desktop")]
mod desktop_acting;
#[cfg(feature = "desktop")]
mod desktop_browser;
#[cfg(feature = "desktop")]
mod desktop_stand_ins;
#[cfg(feature = "desktop")]
mod desktop_faults;
#[cfg(feature = "desktop")]
mod desktop_qt;
#[cfg(feature = "desktop")]
mod desktop_tools;
