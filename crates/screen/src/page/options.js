// Options of a native list. A choice by name never counts what cannot be chosen, and one that fits
// several is no choice: the group, the value and the number tell them apart.

// Options that a refusal tells of.
const MOST_OPTIONS = 50;

const isPaintable = (element) => !element.hidden && getComputedStyle(element).display !== "none";

const groupOf = (option) => (option.parentNode?.localName === "optgroup" ? option.parentNode : null);

// Whether a person could choose an option now.
function isOffered(option) {
  const group = groupOf(option);
  return !option.disabled && isPaintable(option) && (!group || !group.disabled && isPaintable(group));
}

// Letters that look the same are the same.
const plainly = (text) => tidy(text.normalize("NFKC"));

const inGroup = (option) => tidy((groupOf(option) ? `${groupOf(option).label}: ` : "") + option.label);

// Tells of an option whether another one, which can be chosen, has the same words.
function twins(offered, said) {
  const counts = new Map();
  for (const one of offered) counts.set(said(one), (counts.get(said(one)) || 0) + 1);
  return (one) => (counts.get(said(one)) || 0) > (offered.has(one) ? 1 : 0);
}

// The names of all options, with their groups; those that are alike with their values, or numbers.
function optionNames(list) {
  const options = [...list.options];
  const offered = new Set(options.filter(isOffered));
  const full = (one) => plainly(inGroup(one));
  const [isNamedAlike, isAlike] = [twins(offered, full), twins(offered, (one) => `${full(one)} (${one.value})`)];
  return options.map((one, at) => {
    if (!isNamedAlike(one)) return inGroup(one);
    return isAlike(one) ? `${inGroup(one)} (#${at + 1})` : `${inGroup(one)} (${one.value})`;
  });
}

// What is chosen in a list, in words: the bare ones, unless another option has them as well.
function chosenNames(list) {
  const chosen = [...list.selectedOptions];
  if (!chosen.length) return [];
  const isAlike = twins(new Set([...list.options].filter(isOffered)), (one) => plainly(one.label));
  const names = chosen.some(isAlike) ? optionNames(list) : [];
  return chosen.map((one) => (isAlike(one) ? names[one.index] : one.label));
}

// The options that words fit: the name, the value, the group beside the name, or #number.
function optionsMeant(list, wanted) {
  const [options, names] = [[...list.options], optionNames(list)];
  const word = plainly(wanted);
  const lower = word.toLowerCase();
  const bare = (text) => plainly(text).toLowerCase().replace(/[^\p{L}\p{N}]+/gu, " ").trim();
  const label = (one) => plainly(one.label);
  const both = (one) => [`${groupOf(one).label} ${one.label}`, `${one.label} ${groupOf(one).label}`].map(bare);
  const ways = [
    (one) => label(one) === word || plainly(names[one.index]) === word,
    (one) => one.value === wanted,
    (one) => label(one).toLowerCase() === lower || plainly(names[one.index]).toLowerCase() === lower,
    (one) => groupOf(one) && both(one).includes(bare(wanted)),
    (one) => word === `#${one.index + 1}`,
  ];
  let disabled = [];
  for (const way of ways) {
    const fit = options.filter(way);
    const offered = fit.filter(isOffered);
    if (offered.length) return { fit: offered };
    if (!disabled.length) disabled = fit.filter(isPaintable);
  }
  return { fit: [], disabled };
}

// An option for a person: its name with the group, and what it sends.
function optionInWords(option) {
  const name = inGroup(option);
  return option.value === option.label ? name : `${name} (value ${option.value})`;
}

// The one option that words mean, for a person; empty if there is none.
function optionMeant(list, wanted) {
  if (!(list instanceof HTMLSelectElement) || !wanted) return "";
  const { fit } = optionsMeant(list, wanted);
  return fit.length === 1 ? bounded(optionInWords(fit[0]), MAX_NAME) : "";
}

// Chooses the option that words mean, or with `only` tells why it cannot.
function choose(number, wanted, only) {
  const element = elementOf(number);
  const list = element instanceof HTMLLabelElement ? element.control || element : element;
  if (!list) return JSON.stringify({ gone: true });
  if (!(list instanceof HTMLSelectElement)) return JSON.stringify({ wrong: hands.words(list) });
  const { fit, disabled } = optionsMeant(list, wanted);
  if (fit.length > 1) {
    const several = fit.slice(0, MOST_OPTIONS).map((one) => bounded(`#${one.index + 1} “${inGroup(one)}” (value “${one.value}”)`, MAX_NAME));
    return JSON.stringify({ several });
  }
  if (!fit.length && !disabled.length) {
    const options = optionNames(list).filter((_, at) => isOffered(list.options[at]));
    return JSON.stringify({ options: options.slice(0, MOST_OPTIONS), more: options.length > MOST_OPTIONS });
  }
  if (!fit.length || list.disabled) return JSON.stringify({ disabled: true });
  if (only) return JSON.stringify({ chosen: [] });
  fit[0].selected = !list.multiple || !fit[0].selected;
  list.focus();
  hands.report(list);
  return JSON.stringify({ chosen: chosenNames(list) });
}
