//! Words in several languages: those that change a command, those that take something away, and
//! those by which pages call the same thing. Words of a table are joined by commas.

use std::{
    collections::{HashMap, HashSet},
    sync::LazyLock,
};

/// Words that change the meaning of a command, in lower case: English, German, French, Spanish.
const CHANGING: [&str; 4] = [
    "a, about, after, again, all, also, always, and, another, any, anyway, asap, before, both, but, \
     cancel, don't, dont, don’t, each, either, else, every, everything, except, first, five, four, \
     half, if, immediately, instead, just, later, least, less, maybe, more, most, never, next, no, \
     none, nor, not, nothing, now, once, one, only, or, otherwise, perhaps, per, please, provided, \
     rather, same, soon, stop, ten, than, then, three, thrice, times, today, together, tomorrow, \
     tonight, twice, two, unless, until, when, whenever, while, with, without, yesterday",
    "abbrechen, aber, alle, anstatt, auch, außer, bevor, bis, danach, dann, doch, doppelt, dreimal, \
     einmal, erst, falls, heute, immer, jetzt, kein, keine, morgen, nach, nicht, nie, niemals, \
     noch, nur, oder, ohne, sofort, sondern, sonst, sowie, später, statt, übermorgen, und, \
     vielleicht, vorher, wenn, zuerst, zweimal",
    "annuler, après, aujourd'hui, aujourd’hui, aussi, autrement, avant, chaque, demain, deux, \
     encore, ensuite, et, fois, jamais, maintenant, mais, ne, ni, non, ou, pas, plus, puis, quand, \
     sans, sauf, seulement, si, sinon, toujours, tous, tout",
    "ahora, antes, aunque, cancelar, cuando, después, dos, entonces, excepto, hoy, jamás, luego, \
     mañana, menos, ni, nunca, o, otra, otro, pero, salvo, siempre, sin, sino, solamente, solo, \
     sólo, también, todo, todos, veces, vez, y",
];

/// Parts of words that mean the removal of something, in lower case.
const DESTRUCTIVE: &str = "\
     delete, remove, cancel, unsubscribe, discard, erase, destroy, revoke, reset, wipe, terminate, \
     deactivate, refund, reject, decline, clear, empty, löschen, lösche, entfernen, abbrechen, \
     kündigen, verwerfen, abmelden, stornieren, ablehnen, zurücksetzen, leeren, supprimer, annuler, \
     retirer, effacer, résilier, refuser, vider, eliminar, borrar, cancelar, quitar, anular, \
     rechazar, descartar, vaciar";

/// Different names that pages use for the same thing, in lower case, a row a thing. A name stands
/// in one row only.
const SAME: [&str; 47] = [
    "name, full name, your name, name und vorname, vollständiger name, nom complet, nombre completo",
    "street and number, address line, street address, street, straße und hausnummer, straße, \
     adresse, rue et numéro, calle y número",
    "city, town, ort, stadt, ville, ciudad",
    "country, country or region, land or region, land, pays, país",
    "e-mail, email, e-mail address, email address, mail address, e-mail-adresse, adresse e-mail, \
     correo electrónico",
    "phone, telephone, phone number, telefon, telefonnummer, téléphone, teléfono",
    "company, firma, unternehmen, société, empresa",
    "zip, zip code, postcode, postal code, plz, postleitzahl, code postal, código postal",
    "quantity, pieces, number of pieces, menge, anzahl, quantité, cantidad",
    "date, day, datum, tag, fecha",
    "time, uhrzeit, heure, hora",
    "from, leaving from, departing from, von, départ, origen",
    "to, going to, nach, destination, destino",
    "passenger, traveller, traveler, name of the traveller, reisende person, fahrgast, passager, \
     pasajero",
    "class, comfort, klasse, classe, clase",
    "subject, betreff, objet, asunto",
    "message, nachricht, mensaje",
    "title, titel, titre, título",
    "search, suche, suchen, rechercher, buscar",
    "continue, next, next step, weiter, continuer, suivant, continuar, siguiente",
    "back, previous, zurück, retour, atrás",
    "add to cart, add to basket, put into basket, in den warenkorb, ajouter au panier, añadir al \
     carrito",
    "cart, basket, warenkorb, panier, carrito",
    "check out, checkout, go to checkout, proceed to checkout, zur kasse, passer à la caisse",
    "place order, place your order, order now, buy now, jetzt kaufen, kostenpflichtig bestellen, \
     jetzt bestellen, commander, comprar ahora",
    "book now, book, reserve, reserve now, jetzt buchen, buchen, réserver, reservar",
    "send, send now, senden, absenden, jetzt senden, envoyer, enviar",
    "compose, write, new mail, new message, schreiben, verfassen, rédiger, redactar",
    "reply, answer, antworten, répondre, responder",
    "save, keep, speichern, enregistrer, guardar",
    "save changes, apply, apply changes, änderungen speichern, übernehmen, enregistrer les \
     modifications, guardar cambios",
    "save draft, save as draft, entwurf speichern",
    "preview, vorschau, aperçu, vista previa",
    "new appointment, add an event, new event, add appointment, neuer termin, nouveau rendez-vous, \
     nueva cita",
    "network, connection, netzwerk, réseau, red",
    "advanced, erweitert, avancé, avanzado",
    "profile, profil, perfil",
    "display name, anzeigename, nom affiché",
    "port, port number, portnummer",
    "help, hilfe, aide, ayuda",
    "log out, sign out, logout, abmelden, se déconnecter, cerrar sesión",
    "log in, sign in, login, anmelden, se connecter, iniciar sesión",
    "subscribe, abonnieren, s'abonner, suscribirse",
    "share, teilen, partager, compartir",
    "close, schließen, fermer, cerrar",
    "print, drucken, imprimer, imprimir",
    "edit, bearbeiten, modifier, editar",
];

/// Returns the words of a table's text.
fn listed(words: &'static str) -> impl Iterator<Item = &'static str> {
    words.split(',').map(str::trim)
}

pub(crate) fn changing() -> impl Iterator<Item = &'static str> {
    CHANGING.into_iter().flat_map(listed)
}

pub(crate) fn changes_a_command(word: &str) -> bool {
    static CHANGES: LazyLock<HashSet<&str>> = LazyLock::new(|| changing().collect());
    let word = word.trim_matches(|c: char| !c.is_alphanumeric());
    CHANGES.contains(word.to_lowercase().as_str())
}

/// Whether a name means that something is removed or undone.
pub(crate) fn is_destructive(name: &str) -> bool {
    let name = name.to_lowercase();
    let mut words = name.split(|c: char| !c.is_alphanumeric());
    words.any(|word| listed(DESTRUCTIVE).any(|known| word.starts_with(known)))
}

/// Returns the number of the thing for which a name is known.
pub(crate) fn thing(name: &str) -> Option<usize> {
    static THINGS: LazyLock<HashMap<&str, usize>> = LazyLock::new(|| {
        let rows = SAME.into_iter().enumerate();
        rows.flat_map(|(row, names)| listed(names).map(move |name| (name, row)))
            .collect()
    });
    THINGS.get(plain(name).as_str()).copied()
}

/// Returns a name in lower case, without counts in brackets, as in `Cart (2)`, and without marks of
/// required fields.
pub(crate) fn plain(name: &str) -> String {
    let is_count = |word: &&str| {
        let inner = word
            .strip_prefix('(')
            .and_then(|word| word.strip_suffix(')'));
        inner.is_some_and(|inner| !inner.is_empty() && inner.bytes().all(|it| it.is_ascii_digit()))
    };
    let words = name.split_whitespace().filter(|word| !is_count(word));
    let name = words.collect::<Vec<_>>().join(" ").to_lowercase();
    name.trim_matches(|c| [':', '*', '.', '…', ' '].contains(&c))
        .to_owned()
}

/// Whether a name can be that of a button with exactly the effect of one of another name: it is
/// short, names no number, and no word of it changes what is done.
pub(crate) fn is_simple(name: &str) -> bool {
    let words: Vec<_> = name.split_whitespace().collect();
    words.len() <= MOST_WORDS
        && !name.chars().any(char::is_numeric)
        && words
            .iter()
            .all(|word| *word == "now" || !changes_a_command(word))
}

/// Maximum number of words of a simple name.
const MOST_WORDS: usize = 3;
