/** PURE. Arguments checked against the JSON Schema of a tool, as far as a form needs it; the tool itself has the last word. */

import { type Json, type JsonObject, exactDigits, isObject, own } from "./json";
import { same } from "./space/differences";

export interface Fault {
  path: string[];
  message: string;
}

const DEPTH_MAX = 24;
const FAULTS_MAX = 50;
/** For all of a schema, which may lead in circles, or ask for more than anybody waits for. What is left then is not told. */
const STEPS_MAX = 2_000_000;
const STEPS_A_CHECK = 20;

/** What is wrong with a value; nothing where nothing is, or where it cannot be told here. */
export function faults(schema: JsonObject, value: Json | undefined): Fault[] {
  const found: Fault[] = [];
  new Checker(schema, found, { left: STEPS_MAX }).check(schema, value, [], 0);
  return found;
}

/** A `$ref` inside the same schema, followed. */
export function resolved(root: JsonObject, schema: Json | undefined): JsonObject {
  let now: Json | undefined = schema;
  for (let hops = 0; hops < 16 && isObject(now) && typeof now.$ref === "string"; hops += 1) {
    const steps = now.$ref.startsWith("#/") ? now.$ref.slice(2).split("/") : [];
    let target: Json | undefined = steps.length === 0 ? undefined : root;
    for (const step of steps.map((one) => one.replaceAll("~1", "/").replaceAll("~0", "~"))) {
      target = isObject(target) && Object.hasOwn(target, step) ? target[step] : undefined;
    }
    now = target;
  }
  return isObject(now) ? now : {};
}

export function typesOf(schema: JsonObject): string[] {
  const { type } = schema;
  if (typeof type === "string") return [type];
  return Array.isArray(type) ? type.filter((one) => typeof one === "string") : [];
}

class Checker {
  constructor(
    private root: JsonObject,
    private found: Fault[],
    private steps: { left: number },
  ) {}

  check(written: Json | undefined, value: Json | undefined, path: string[], depth: number): void {
    this.steps.left -= STEPS_A_CHECK;
    if (depth > DEPTH_MAX || this.steps.left < 0 || this.found.length >= FAULTS_MAX || value === undefined) return;
    const schema = resolved(this.root, written);
    const types = typesOf(schema);
    if (types.length > 0 && !types.some((type) => isOfType(value, type))) {
      this.#fault(path, `must be ${types.map(article).join(" or ")}`);
      return;
    }
    this.#values(schema, value, path);
    if (typeof value === "string") this.#text(schema, value, path);
    else if (typeof value === "number") this.#number(schema, value, path);
    else if (Array.isArray(value)) this.#list(schema, value, path, depth);
    else if (isObject(value)) this.#object(schema, value, path, depth);
    this.#combined(schema, value, path, depth);
  }

  #values(schema: JsonObject, value: Json, path: string[]): void {
    if (Array.isArray(schema.enum)) this.steps.left -= schema.enum.length;
    if (Array.isArray(schema.enum) && !schema.enum.some((one) => same(one, value))) {
      this.#fault(path, `must be one of ${schema.enum.map((one) => JSON.stringify(one)).join(", ").slice(0, 200)}`);
    }
    if (schema.const !== undefined && !same(schema.const, value)) this.#fault(path, `must be ${JSON.stringify(schema.const)}`);
  }

  #text(schema: JsonObject, value: string, path: string[]): void {
    const length = [...value].length;
    if (typeof schema.minLength === "number" && length < schema.minLength) {
      this.#fault(path, schema.minLength === 1 ? "must not be empty" : `must have at least ${schema.minLength} characters`);
    }
    if (typeof schema.maxLength === "number" && length > schema.maxLength) {
      this.#fault(path, `must have at most ${schema.maxLength} characters`);
    }
    if (typeof schema.pattern === "string" && this.#matches(schema.pattern, value) === false) {
      this.#fault(path, `must match ${schema.pattern}`);
    }
  }

  #number(schema: JsonObject, value: number, path: string[]): void {
    const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema;
    if (typeof minimum === "number" && value < minimum) this.#fault(path, `must be at least ${minimum}`);
    if (typeof maximum === "number" && value > maximum) this.#fault(path, `must be at most ${maximum}`);
    if (typeof exclusiveMinimum === "number" && value <= exclusiveMinimum) this.#fault(path, `must be more than ${exclusiveMinimum}`);
    if (typeof exclusiveMaximum === "number" && value >= exclusiveMaximum) this.#fault(path, `must be less than ${exclusiveMaximum}`);
    if (typeof multipleOf === "number" && multipleOf > 0) {
      const times = value / multipleOf;
      if (Math.abs(times - Math.round(times)) > 1e-9) this.#fault(path, `must be a multiple of ${multipleOf}`);
    }
  }

  #list(schema: JsonObject, value: Json[], path: string[], depth: number): void {
    const { minItems, maxItems } = schema;
    if (typeof minItems === "number" && value.length < minItems) this.#fault(path, `must have at least ${minItems} items`);
    if (typeof maxItems === "number" && value.length > maxItems) this.#fault(path, `must have at most ${maxItems} items`);
    const prefix = Array.isArray(schema.prefixItems) ? schema.prefixItems : [];
    value.slice(0, 1_000).forEach((item, at) => this.check(prefix[at] ?? schema.items, item, [...path, String(at)], depth + 1));
  }

  #object(schema: JsonObject, value: JsonObject, path: string[], depth: number): void {
    const properties = isObject(schema.properties) ? schema.properties : {};
    for (const name of Array.isArray(schema.required) ? schema.required : []) {
      if (typeof name === "string" && !Object.hasOwn(value, name)) this.#fault([...path, name], "is required");
    }
    for (const [name, item] of Object.entries(value)) {
      if (Object.hasOwn(properties, name)) this.check(properties[name], item, [...path, name], depth + 1);
      else if (schema.additionalProperties === false && !isObject(schema.patternProperties)) {
        this.#fault([...path, name], "is not an argument of this tool");
      } else if (isObject(schema.additionalProperties)) this.check(schema.additionalProperties, item, [...path, name], depth + 1);
    }
  }

  #combined(schema: JsonObject, value: Json, path: string[], depth: number): void {
    for (const one of Array.isArray(schema.allOf) ? schema.allOf : []) this.check(one, value, path, depth + 1);
    for (const choices of [schema.anyOf, schema.oneOf]) {
      if (Array.isArray(choices) && !choices.some((one) => this.#accepts(one, value, depth))) {
        this.#fault(path, "matches none of the allowed alternatives");
      }
    }
  }

  #accepts(schema: Json, value: Json, depth: number): boolean {
    const found: Fault[] = [];
    new Checker(this.root, found, this.steps).check(schema, value, [], depth + 1);
    return found.length === 0;
  }

  #fault(path: string[], message: string): void {
    if (this.found.length < FAULTS_MAX) this.found.push({ path, message });
  }

  /** Undefined where it is not tried: an expression of somebody else's could keep the page busy for ever. */
  #matches(pattern: string, value: string): boolean | undefined {
    const most = stepsOf(pattern, value);
    if (most > this.steps.left) return undefined;
    this.steps.left -= most;
    try {
      return new RegExp(pattern, "u").test(value);
    } catch {
      return undefined;
    }
  }
}

function isOfType(value: Json, type: string): boolean {
  const number = typeof value === "number" || exactDigits(value) !== null;
  switch (type) {
    case "null":
      return value === null;
    case "array":
      return Array.isArray(value);
    case "object":
      return isObject(value);
    case "number":
      return number;
    case "integer":
      return typeof value === "number" ? Number.isInteger(value) : number;
    default:
      return typeof value === type;
  }
}

function article(type: string): string {
  const words: Record<string, string> = {
    string: "text", number: "a number", integer: "a whole number", boolean: "true or false",
    array: "a list", object: "an object", null: "null",
  };
  return own(words, type) ?? type;
}

/** How many steps an expression may take at most: from each place, each repeat may end anywhere, and each choice be either. */
function stepsOf(pattern: string, value: string): number {
  if (pattern.length > 200 || /\)[*+{?]|\\[\dk]|\(\?<?[=!]/.test(pattern)) return Infinity;
  const repeats = pattern.match(/[*+]|\{\d+,/g)?.length ?? 0;
  const choices = pattern.match(/[?|]/g)?.length ?? 0;
  return pattern.length + (value.length + 1) ** (repeats + 1) * 2 ** choices;
}
