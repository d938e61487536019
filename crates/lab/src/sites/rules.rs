//! Checks of a site before an event happens, and the data it adds. Sites that are not named here
//! take whatever their pages send.

use serde_json::{Map, Value, json};

use crate::sites::{
    pages,
    world::{SiteEvent, SiteRefusal},
};

pub(crate) struct AdmissibleEvent<'a> {
    pub(crate) site: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) data: Map<String, Value>,
}

/// The only account of the login, and its password.
const ACCOUNT: (&str, &str) = ("ada", "analytical");

/// Judges an action of a visitor at a site, after the earlier events of the world.
pub(crate) fn admit<'a>(
    world: &str,
    events: &[SiteEvent],
    site: &'a str,
    kind: &'a str,
    data: Map<String, Value>,
) -> Result<AdmissibleEvent<'a>, SiteRefusal> {
    let (site, kind, data) = match (site, kind) {
        ("shop", "order") => (site, kind, order(world, events, data)?),
        ("settings", "save") => {
            settings(&data)?;
            (site, kind, data)
        }
        ("login", "ask") => ("phone", "code", code(events, &data)?),
        ("login", "enter") => (site, "login", enter(events, &data)?),
        ("wizard", "book") => {
            need(&data, &["from", "to", "date", "class", "passenger"])?;
            (site, kind, data)
        }
        _ => (site, kind, data),
    };
    Ok(AdmissibleEvent { site, kind, data })
}

/// Admits an order of the shop: what lies in the cart since the last order, its sum, and a number.
fn order(
    world: &str,
    events: &[SiteEvent],
    mut data: Map<String, Value>,
) -> Result<Map<String, Value>, SiteRefusal> {
    need(&data, &["name", "street", "city", "country"])?;
    let is_of = |event: &SiteEvent, kind: &str| event.site == "shop" && event.kind == kind;
    let orders = events.iter().filter(|one| is_of(one, "order")).count();
    let last = events.iter().rposition(|one| is_of(one, "order"));
    let since = &events[last.map_or(0, |at| at + 1)..];
    let mut cart = Map::new();
    for event in since.iter().filter(|one| is_of(one, "cart")) {
        let count = match event.data.get("count") {
            Some(Value::String(text)) => text.parse().unwrap_or(0),
            Some(number) => number.as_u64().unwrap_or(0),
            None => 0,
        };
        let sku = text(&event.data, "sku");
        match count {
            0 => cart.remove(sku),
            count => cart.insert(sku.to_owned(), count.into()),
        };
    }
    let goods = pages::data_in(world, "shop");
    let price = |sku: &str| {
        let goods = goods["goods"].as_array().into_iter().flatten();
        let found = goods.into_iter().find(|one| one["sku"] == sku);
        found.and_then(|one| one["price"].as_u64())
    };
    let mut sum = 0;
    for (sku, count) in &cart {
        let Some(price) = price(sku) else {
            return Err(SiteRefusal::Invalid(format!("`{sku}` is not on sale")));
        };
        sum += price.saturating_mul(count.as_u64().unwrap_or(0).min(99));
    }
    if cart.is_empty() {
        return Err(SiteRefusal::Invalid("the cart is empty".to_owned()));
    }
    data.insert("number".to_owned(), json!(1001 + orders));
    data.insert("items".to_owned(), cart.into());
    data.insert("total".to_owned(), sum.into());
    Ok(data)
}

fn settings(data: &Map<String, Value>) -> Result<(), SiteRefusal> {
    need(data, &["name", "email"])?;
    let is_address = |text: &str| {
        let parts = text.split_once('@');
        parts.is_some_and(|(who, host)| !who.is_empty() && host.contains('.'))
    };
    if !is_address(text(data, "email")) {
        return Err(SiteRefusal::Invalid(
            "this is not an e-mail address".to_owned(),
        ));
    }
    let port = text(data, "port").parse::<u16>();
    if !port.is_ok_and(|port| port >= 1024) {
        let message = "the port must lie between 1024 and 65535";
        return Err(SiteRefusal::Invalid(message.to_owned()));
    }
    Ok(())
}

/// A code to the telephone, if name and password are right.
fn code(
    events: &[SiteEvent],
    data: &Map<String, Value>,
) -> Result<Map<String, Value>, SiteRefusal> {
    if (text(data, "user"), text(data, "password")) != ACCOUNT {
        return Err(SiteRefusal::Invalid("wrong name or password".to_owned()));
    }
    let asked = events.iter().filter(|one| one.site == "phone").count();
    let asked = u32::try_from(asked).unwrap_or(u32::MAX);
    let mixed = asked.wrapping_mul(104_729).wrapping_add(417_352);
    let code = format!("{:06}", mixed % 1_000_000);
    Ok(Map::from_iter([("code".to_owned(), code.into())]))
}

/// Admits a login, once, by the last code that was sent.
fn enter(
    events: &[SiteEvent],
    data: &Map<String, Value>,
) -> Result<Map<String, Value>, SiteRefusal> {
    let last = events
        .iter()
        .rev()
        .find(|one| one.site == "phone" || one.site == "login" && one.kind == "login");
    match last {
        Some(sent) if sent.site == "phone" && sent.data.get("code") == data.get("code") => {
            Ok(Map::from_iter([("user".to_owned(), ACCOUNT.0.into())]))
        }
        _ => Err(SiteRefusal::Invalid("this code is not valid".to_owned())),
    }
}

fn need(data: &Map<String, Value>, fields: &[&str]) -> Result<(), SiteRefusal> {
    let missing = fields
        .iter()
        .find(|field| text(data, field).trim().is_empty());
    missing.map_or(Ok(()), |field| {
        Err(SiteRefusal::Invalid(format!(
            "the field `{field}` is empty"
        )))
    })
}

fn text<'a>(data: &'a Map<String, Value>, field: &str) -> &'a str {
    data.get(field).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sites::world::Worlds;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn an_order_is_what_lies_in_the_cart() {
        let worlds = Worlds::default();
        let act = |kind, data| worlds.act("w", "shop", kind, map(data));
        let to = json!({"name": "Ada", "street": "12 Row", "city": "London", "country": "UK"});
        let empty = act("order", to.clone()).unwrap_err();
        assert_eq!(empty.to_string(), "the cart is empty");
        act("cart", json!({"sku": "brass-desk-lamp", "count": "3"})).unwrap();
        act("cart", json!({"sku": "brass-desk-lamp", "count": 1})).unwrap();
        act("cart", json!({"sku": "gift-card", "count": 10})).unwrap();
        act("cart", json!({"sku": "gift-card", "count": 0})).unwrap();
        assert!(act("order", json!({"name": "Ada"})).is_err());
        let placed = act("order", to.clone()).unwrap().data;
        assert_eq!(placed["number"], 1001);
        assert_eq!(placed["items"], json!({"brass-desk-lamp": 1}));
        assert_eq!(placed["total"], 8900);
        assert!(act("order", to).is_err(), "a cart is ordered once");
    }

    #[test]
    fn a_login_needs_the_last_code() {
        let worlds = Worlds::default();
        let act = |kind, data| worlds.act("w", "login", kind, map(data));
        assert!(act("enter", json!({"code": null})).is_err());
        assert!(act("ask", json!({"user": "ada", "password": "x"})).is_err());
        let asked = json!({"user": "ada", "password": "analytical"});
        let first = act("ask", asked.clone()).unwrap();
        let second = act("ask", asked).unwrap();
        assert_eq!(first.site, "phone");
        assert_ne!(first.data, second.data);
        assert!(act("enter", first.data.into()).is_err());
        act("enter", second.data.clone().into()).unwrap();
        assert!(act("enter", second.data.into()).is_err(), "it works once");
    }

    #[test]
    fn settings_are_checked() {
        let check = |email: &str, port: &str, expected: bool| {
            let data = map(json!({"name": "Ada", "email": email, "port": port}));
            assert_eq!(settings(&data).is_ok(), expected, "{email} {port}");
        };
        check("ada@example.org", "8080", true);
        check("ada", "8080", false);
        check("ada@example.org", "80", false);
        check("ada@example.org", "70000", false);
    }
}
