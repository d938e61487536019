//! The sandbox, tried with real processes. This program is also what starts them and what is
//! confined; hence a `main` instead of the usual harness.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test, though without harness"
)]

mod attacks;
mod binds;
mod everyday;
mod intruder;
mod kept;
mod masks;
mod process;
mod proven;
mod proxy;
mod sockets;
mod start;
mod world;

use libtest_mimic::{Arguments, Trial};

use start::{Around, User};

type Test = fn(User, Around);

const TESTS: &[(&str, Test)] = &[
    ("attacks", attacks::all_fail),
    ("races", attacks::races_lead_nowhere),
    ("planted_links", attacks::planted_links_are_not_followed),
    ("limits", attacks::limits_hold),
    ("open_network", attacks::open_network_opens_no_more),
    ("everyday", everyday::works_as_outside),
    ("layers", everyday::layers_keep_changes),
    ("masks", masks::hold_whatever_is_run),
    ("binds", binds::stand_over_everything),
    ("binds_refused", binds::need_a_place_without_links),
    ("proof", proven::holds),
    ("proxy", proxy::asks_about_each_connection),
    ("one_destination", proxy::a_connection_has_one_destination),
    ("held", proxy::a_held_connection_holds_nothing_up),
    ("forwarded", proxy::a_forwarded_address_leads_outside),
    ("sockets_outside", sockets::outside_are_out_of_reach),
    ("sockets_raced", sockets::races_reach_nobody_outside),
    ("sockets_inside", sockets::inside_can_be_reached),
    ("sockets_let_in", sockets::only_what_is_let_in_is_reached),
    ("supervisor", sockets::the_supervisor_is_out_of_reach),
];

/// Without namespaces.
const ALONE: &[(&str, Test)] = &[
    ("attacks", attacks::all_fail),
    ("races", attacks::races_lead_nowhere),
    ("planted_links", attacks::planted_links_are_not_followed),
    ("open_network", attacks::open_network_opens_no_more),
    ("binds", binds::are_missed_without_namespaces),
    ("proof", proven::holds),
    ("proxy", proxy::asks_about_each_connection),
    ("sockets_outside", sockets::outside_are_out_of_reach),
    ("sockets_raced", sockets::races_reach_nobody_outside),
    ("sockets_inside", sockets::inside_can_be_reached),
    ("sockets_let_in", sockets::only_what_is_let_in_is_reached),
    ("supervisor", sockets::the_supervisor_is_out_of_reach),
    ("left_behind", attacks::nothing_is_left_behind),
    ("kept", kept::stays_as_it_is),
    ("hidden", kept::nothing_runs_beside_what_is_hidden),
    ("everyday", kept::keeps_nobody_from_working),
];

fn main() {
    gyrus_gate::sandbox::probe_if_asked();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [start::ARGUMENT, order] => std::process::exit(start::obey(order)),
        [intruder::ARGUMENT, part, task] => std::process::exit(intruder::act(part, task)),
        _ => {}
    }
    let mut trials = Vec::new();
    let mut add = |name: String, test: Test, user, around, possible: bool| {
        let trial = Trial::test(name, move || {
            test(user, around);
            Ok(())
        });
        // Shown as ignored where the system does not allow it.
        trials.push(trial.with_ignored_flag(!possible));
    };
    let namespaces = process::can_enter();
    for (name, test) in TESTS {
        let around = Around::Namespace;
        add(
            format!("current::{name}"),
            *test,
            User::Current,
            around,
            namespaces,
        );
        let possible = namespaces && world::can_change_user();
        add(
            format!("other::{name}"),
            *test,
            User::Other,
            around,
            possible,
        );
    }
    for (name, test) in ALONE {
        let is_root = world::can_change_user();
        let mut add = |place: &str, user, around, possible| {
            add(format!("{place}::{name}"), *test, user, around, possible);
        };
        add("alone::current", User::Current, Around::Nothing, true);
        add("alone::other", User::Other, Around::Nothing, is_root);
        add("container::other", User::Other, Around::Container, is_root);
    }
    let nothing = (User::Current, Around::Nothing);
    add(
        "proof_of_nothing".to_owned(),
        proven::sees_what_is_missing,
        nothing.0,
        nothing.1,
        true,
    );
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
