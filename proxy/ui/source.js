// Asks the proxy. The key, if one is needed, is in this module's memory only: not in the address, not in a storage.

const PATIENCE = 5000; // milliseconds
const PROVING = 600000;

let key = "";

export class NeedsKey extends Error {}

/** From now on; empty to forget it. */
export function setKey(text) {
  key = text.trim();
}

export const hasKey = () => key !== "";

/** All there is to see; throws NeedsKey, or an Error that says why there is no answer. */
export const overview = () => ask("../overview", "GET", PATIENCE);

/** Send a canary through every pair; the pairs with what that has shown. */
export const prove = () => ask("../pairs/prove", "POST", PROVING);

async function ask(path, method, patience) {
  const headers = key === "" ? {} : { authorization: `Bearer ${key}` };
  const options = { method, headers, cache: "no-store", credentials: "omit", signal: AbortSignal.timeout(patience) };
  let answer;
  try {
    answer = await fetch(path, options);
  } catch (error) {
    throw new Error(error.name === "TimeoutError" ? `no answer within ${patience / 1000} s` : "no connection");
  }
  if (answer.status === 401) throw new NeedsKey();
  if (!answer.ok) throw new Error(`it answers ${answer.status}`);
  try {
    return await answer.json();
  } catch {
    throw new Error("it answers what is no overview");
  }
}
