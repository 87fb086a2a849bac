/** Something to be handed on: shown whole, and copied with one press. */

import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";

interface Props {
  name: string;
  value: string;
  /** What stands there until there is something. */
  placeholder?: string;
  first?: boolean;
  /** Told when it was copied, by the button or by hand. */
  onCopied?: () => void;
}

export function Copying({ name, value, placeholder = "", first = false, onCopied }: Props) {
  const field = useRef<HTMLInputElement>(null);
  const copied = useSignal(false);
  const copy = async (): Promise<void> => {
    copied.value = await copyFrom(field.current);
    if (copied.value) onCopied?.();
  };
  return (
    <div class="copying">
      <label>
        {name}
        <input
          ref={field}
          readOnly
          class="mono"
          value={value}
          placeholder={placeholder}
          data-first={first ? true : undefined}
          onFocus={(event) => event.currentTarget.select()}
          onCopy={() => onCopied?.()}
        />
      </label>
      <button type="button" disabled={value === ""} aria-label={`${copied.value ? "Copied" : "Copy"}: ${name}`} onClick={() => void copy()}>
        {copied.value ? "Copied" : "Copy"}
      </button>
    </div>
  );
}

/** Browsers keep `navigator.clipboard` from pages without TLS: there, what is selected is copied as by hand. */
async function copyFrom(field: HTMLInputElement | null): Promise<boolean> {
  if (field === null) return false;
  try {
    await navigator.clipboard.writeText(field.value);
    return true;
  } catch {
    field.select();
    return document.execCommand("copy");
  }
}
