/** PURE. Whether a question asks for what nobody should tell a whole space: a password, a token, a key. */

import type { JsonObject } from "../json";
import { resolved } from "../schema";
import { objectIn, textIn } from "./fields";

const FIELDS_MAX = 100;
const READ_MAX = 4_000;
/** Without what separates words, so that `api_key`, `apiKey` and `API key` are one. */
const RUN_TOGETHER = /passw|passphrase|passcode|secret|token(?!s)|apikey|accesskey|privatekey|credential|seedphrase|recoverycode|onetimecode|kennwort/;
const WORD = /\b(pin|otp|cvv|cvc|ssn|2fa|mfa|iban)\b/;

/** What it asks for that looks like a secret: names of fields, or "in the message" where the message alone does. */
export function secretsAsked({ message, schema }: { message: string; schema: JsonObject }): string[] {
  const fields = Object.entries(objectIn(schema.properties)).slice(0, FIELDS_MAX);
  const found = fields.filter(([name, written]) => {
    const field = resolved(schema, written);
    const said = [name, textIn(field.title), textIn(field.description)];
    return field.format === "password" || said.some((words) => words !== null && isSecret(words));
  });
  if (found.length > 0) return found.map(([name]) => name);
  return isSecret(message) ? ["in the message"] : [];
}

function isSecret(words: string): boolean {
  const read = words.slice(0, READ_MAX).normalize("NFKC");
  const apart = read.replace(/([a-z\d])([A-Z])/g, "$1 $2").toLowerCase().replace(/[^\p{L}\p{N}]+/gu, " ");
  return RUN_TOGETHER.test(apart.replaceAll(" ", "")) || WORD.test(apart);
}
