// @ts-check
// The printed address has a code behind the `#`, which no server is sent by itself.

/**
 * Exchanges the code for a cookie. Returns whether there is one to exchange.
 * @param {boolean} isIn whether the browser is let in already; a code is used up all the same
 */
export function enter(isIn) {
  const code = location.hash.slice(1);
  if (!/^[\w-]{16,}$/.test(code) || document.getElementById(code)) return false;
  // It leaves the address bar, and the history, before anything else.
  history.replaceState(null, "", location.pathname + location.search);
  void exchange(code, isIn);
  return true;
}

/**
 * @param {string} code
 * @param {boolean} isIn
 */
async function exchange(code, isIn) {
  const answer = await fetch("/login", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ code }),
  }).catch(() => null);
  if (answer?.ok || isIn) {
    location.reload();
    return;
  }
  const said = document.getElementById("said");
  if (!said) return;
  const error = answer ? await answer.json().catch(() => null) : null;
  const why = error?.error ?? "the server does not answer";
  said.textContent = `Not let in: ${why}. For another address, type in a terminal:`;
}
