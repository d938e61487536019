//! The examples of the documentation are policies.

use crate::world::parse;

#[test]
fn every_policy_in_the_documentation_loads() {
    let text = include_str!("../../../../docs/policy.md");
    let mut count = 0;
    for block in text.split("```toml\n").skip(1) {
        let (policy, _) = block.split_once("```").expect("a block ends");
        let may_loosen = !policy.starts_with("# .gyrus/policy.toml");
        if let Err(error) = parse(policy, may_loosen) {
            panic!("{error}\n{policy}");
        }
        count += 1;
    }
    assert!(count >= 3, "{count} policies");
}
