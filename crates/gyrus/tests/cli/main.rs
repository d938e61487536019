//! gyrus as a person meets it: the real binary, its exit codes, its words, its files.
//!
//! Each test has a home and a folder of its own, plays a script, and looks at what is left.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "these are tests, helpers included"
)]

mod deciding_hooks;
mod sub_runs;
mod support;
mod http;
mod clocks;
mod server;
mod journal;
mod judging;
mod terminal;
mod provider;
#[expect(dead_code, reason = "the attacked office takes more of it")]
#[path = "../attacks/tool_server.rs"]
mod tool_server;
mod editor;

#[cfg(feature = "fleet")]
mod fleet;
#[cfg(feature = "fleet")]
mod fleet_admission;
#[cfg(feature = "fleet")]
mod fleet_doors;
#[cfg(feature = "fleet")]
mod fleet_folders;
#[cfg(feature = "fleet")]
mod fleet_full;
mod document_003;
mod carrying_over;
mod lessons;
mod catching_up;
mod answer_schemas;
mod ci_examples;
mod mcp_serving;
mod third_run;
mod page_cards;
mod page_links;
mod reflecting;
mod refusing;
mod remembering;
mod namespaces;
mod reaching;
mod record_ids;
mod asking;
mod connecting;
mod granting;
mod withholding;
mod committing;
mod large_folders;
mod learning;
mod paying;
mod denying;
mod rights;
mod roles;
mod sealing;
mod sizing;
mod skill_packages;
mod skill_tasks;
mod skills;
mod finding_tools;
mod joining;
mod server_requests;
mod serving;
mod staying;
mod assessing;
mod at_a_terminal;
mod attended;
mod language_servers;
mod limits;
mod prefixes;
mod prompting;
mod pinning;
mod plugins;
mod importing;
mod plainer;
mod planning;
mod profiles;
mod returning;
mod plan_repairs;
mod plan_review;
mod embedding;
mod engineering;
mod context;
mod continuing;
mod models;
mod setting_up;
mod verifying;
mod web_search;
mod wrong;
mod unseen;
mod binding;
mod browsing;
mod changing;
mod chat;
mod change_review;
mod attaching;
mod editing;
mod evaluating;
mod tasks_in_folders;
mod public_suites;
mod updating;
mod taking_over;
mod teaching;
mod telemetry;
mod crashing;
mod approval_crashing;
mod interrupting;
mod stopping;
mod guidelines;
mod holding;
mod homes;
mod keeping;
mod records;
mod undoing;
mod configured_secrets;
mod mandates;
mod mandate_links;
mod mandates_beyond;
mod memory;
mod office;
mod one_rule;
mod page_mandates;
mod page;
#[cfg(feature = "desktop")]
mod desktop;
#[cfg(feature = "desktop")]
mod desktop_evaluations;
#[cfg(feature = "desktop")]
mod desktop_procedures;
mod desktop_runs;
#[cfg(feature = "desktop")]
mod status_dot;
mod disks;
mod documented;
mod fitting;
mod folders;
mod following;
mod patches;
mod demo;
mod real_model;
