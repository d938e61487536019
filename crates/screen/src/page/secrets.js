// Fields whose value never leaves the page: passwords (also ones that are shown for a moment),
// one-time codes, cards. That a field was a password once is remembered.
const onceSecret = new WeakSet();
// Passwords that were seen, to know them where the page repeats them.
const passwords = new Set();
const MAX_PASSWORDS = 20;
const SHORTEST_PASSWORD = 6;

// Hints of a page. It says `new-password` of any field, so that browsers fill nothing in: that is one
// only if its type is, or was, that of a password.
const SECRET_HINTS = /(^|\s)(one-time-code|cc-(?!type|name|given-name|family-name|additional-name)[a-z-]+)(\s|$)/;
// In technical names, taken apart at capitals, dashes and underscores.
const CODE_NAME = /(^| )(otp|totp|hotp|2fa|mfa|tan|pin|pin ?code|passcode|one time (code|password|pass)|verification code|auth(entication)? code|sms code|two factor|security code|cvc2?|cvv2?|csc|ccv|card ?(number|num|no)|cc ?(number|num|no|csc|cvc|cvv)|credit ?card( ?number)?|card verification)( |$|\d)/;
const CODE_LABEL = /\b(card number|credit card|debit card|security code|cvc2?|cvv2?|one-?time (code|password)|verification code|authentication code|2fa|otp|passcode|pin)\b/;
const CODE_TYPES = new Set(["text", "tel", "number", "search", "password"]);

function watchSecrets(root) {
  new MutationObserver((changes) => {
    for (const change of changes) {
      if (change.oldValue?.toLowerCase() === "password") remember(change.target);
    }
  }).observe(root, { subtree: true, attributes: true, attributeFilter: ["type"], attributeOldValue: true });
}
watchSecrets(document);

function remember(element) {
  onceSecret.add(element);
  if (element.value?.length >= SHORTEST_PASSWORD) {
    passwords.delete(element.value);
    passwords.add(element.value);
    if (passwords.size > MAX_PASSWORDS) passwords.delete(passwords.values().next().value);
  }
}

function apart(text) {
  return text.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase().replace(/[^a-z0-9]+/g, " ").trim();
}

// Whether an input, a text area or a list holds a secret.
function isSecret(element) {
  const name = element.localName;
  if (name !== "input" && name !== "textarea" && name !== "select") return false;
  if (element.type === "password") {
    remember(element);
    return true;
  }
  if (onceSecret.has(element)) {
    remember(element);
    return true;
  }
  if (element.type !== "search" && SECRET_HINTS.test((element.getAttribute("autocomplete") || "").toLowerCase())) return true;
  if (name === "input" && CODE_TYPES.has(element.type)) {
    const said = element.getAttribute("aria-label") || element.labels?.[0]?.textContent || element.placeholder;
    // In India a PIN code is one of the post.
    const isOfPost = !!said && /\b(postal|post|zip)\b/i.test(said);
    if (!isOfPost && (CODE_NAME.test(apart(element.name)) || CODE_NAME.test(apart(element.id)))) return true;
    if (!isOfPost && said && said.length < 200 && CODE_LABEL.test(said.toLowerCase())) return true;
    if (isCodeCell(element) || getComputedStyle(element).webkitTextSecurity !== "none") return true;
  }
  return name !== "select" && repeatsSecret(element.value);
}

// One of the boxes for the digits of a code.
function isCodeCell(element) {
  if (element.maxLength !== 1) return false;
  const box = element.closest("form, fieldset, [role=group]") || element.parentElement?.parentElement;
  return !!box && box.querySelectorAll("input[maxlength='1']").length >= 4;
}

// Whether text holds a password that was typed on this page.
function repeatsSecret(text) {
  if (!text || passwords.size === 0) return false;
  for (const password of passwords) {
    if (text.includes(password)) return true;
  }
  return false;
}

// Text as it may leave the page.
function withoutSecrets(text) {
  if (!repeatsSecret(text)) return text;
  let left = text;
  for (const password of passwords) left = left.replaceAll(password, MASK);
  return left;
}

const MASK = "•••";
