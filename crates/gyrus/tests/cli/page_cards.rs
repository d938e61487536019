//! Cards about pages: one for all of a form.

use std::sync::Arc;

use gyrus_kernel::Entry;
use parking_lot::Mutex;

use crate::{
    browsing::{Held, browsing, has_browser},
    http,
    support::World,
};

/// Fills in and pays by one action, and finishes.
const PAYS: &str = r#"
[[reply]]
find = { who = '(\w+) textbox "Name on card"', number = '(\w+) textbox "Card number"', month = '(\w+) combobox "Month"', code = '(\w+) textbox "Security code"', pay = '(\w+) button "Pay now' }
text = '''{"note": "all at once", "actions": [{"do": "click", "on": "{{pay}}", "fill": [["{{who}}", "Ada Lovelace"], ["{{number}}", "4111111111111111"], ["{{month}}", "July"], ["{{code}}", "737"]]}]}'''
[[reply]]
find = { token = 'token of this run is: ([0-9a-f ]+)' }
text = '''{"note": "done", "actions": [{"do": "finish", "token": "{{token}}", "reached": true, "answer": "Done."}]}'''
"#;

/// Writes the number in groups, as such pages do.
const PAYMENT: &str = r#"<!doctype html><title>Payment</title><form method=post action=/charge>
<input type=hidden name=amount value=42.00>
<label>Name on card <input name=holder autocomplete=cc-name></label>
<label>Card number <input name=number autocomplete=cc-number oninput="value = value.replace(/\D/g, '').replace(/(.{4})(?=.)/g, '$1 ')"></label>
<label>Month <select name=month><option value="">Choose</option><option value=7>July</option><option value=8>August</option></select></label>
<label>Security code <input name=code autocomplete=cc-csc></label>
<button>Pay now: 42 EUR</button></form><script>CHEATS</script>"#;

#[test]
fn a_payment_page_of_another_origin_is_asked_about_once() {
    if !has_browser() {
        return;
    }
    let form = "document.forms[0]";
    for (cheats, charged) in [
        (
            String::new(),
            Some("amount=42.00&holder=Ada+Lovelace&number=4111+1111+1111+1111&month=7&code=737"),
        ),
        (
            format!("{form}.code.oninput = () => {{ {form}.month.value = 8; }}"),
            None,
        ),
        (
            format!("{form}.code.oninput = () => {{ {form}.amount.value = 420; }}"),
            None,
        ),
        (
            format!("addEventListener('mousedown', () => {{ {form}.holder.value = 'Eve'; }})"),
            None,
        ),
        (
            format!(
                "{form}.addEventListener('formdata', (event) => event.formData.set('amount', 420))"
            ),
            None,
        ),
    ] {
        let charges: Arc<Mutex<Vec<String>>> = Arc::default();
        let (taken, page) = (charges.clone(), PAYMENT.replace("CHEATS", &cheats));
        let bank = http::serve(move |asked| match asked.method() {
            "POST" => {
                taken.lock().push(asked.text());
                "<!doctype html><title>Thanks</title><p role=status>Paid</p>".to_owned()
            }
            _ => page.clone(),
        });
        let bank = bank.replace("127.0.0.1", "localhost");
        let frame = format!("<iframe src={bank}/pay width=600 height=400></iframe>");
        let shop = http::serve(move |_| {
            format!("<!doctype html><title>Shop</title><h1>Your order</h1>{frame}")
        });
        let world = World::new(PAYS);
        let goal = format!("pay at {shop}");
        let mut arguments = vec!["run", &goal, "--url", &shop, "--on-ask", "wait"];
        arguments.extend(["--require", "claimed"]);
        let run = Held::new(&mut browsing(&world, &arguments));
        world.wait_for(|entry| matches!(entry, Entry::ApprovalAsked(_)));
        world.gyrus(&["approve", "last"]).exits(0);
        run.ends();
        assert_eq!(
            charges.lock().first().map(String::as_str),
            charged,
            "{cheats}"
        );
        let cards = world.entries().into_iter().filter_map(|entry| match entry {
            Entry::ApprovalAsked(asked) => Some(asked.card),
            _ => None,
        });
        let cards: Vec<_> = cards.collect();
        assert_eq!(cards.len(), 1, "{cards:#?}");
        let lines: Vec<_> = cards[0]
            .details
            .iter()
            .map(|line| line.text.clone())
            .collect();
        for wanted in [
            format!("fills in “Name on card” on {bank}: Ada Lovelace"),
            format!("fills in “Month” on {bank}: July"),
            "sends amount (not shown on the page): 42.00".to_owned(),
            "sends Month: July (value 7)".to_owned(),
        ] {
            assert!(lines.contains(&wanted), "{wanted}: {lines:#?}");
        }
        assert!(!lines.concat().contains("4111"), "{lines:#?}");
    }
}
