/** Text to pass on: shown in full, and copied with one press. */

import { useSignal } from "@preact/signals";

interface Props {
  name: string;
  value: string;
  placeholder?: string;
  first?: boolean;
  /** Called when it was copied, by the button or by hand. */
  onCopied?: () => void;
}

export function Copying({ name, value, placeholder = "", first = false, onCopied }: Props) {
  const copied = useSignal(false);
  const copy = async (): Promise<void> => {
    copied.value = await copyText(value);
    if (copied.value) onCopied?.();
  };
  return (
    <div class="copying">
      <label>
        {name}
        <input
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

/** Copy it; return whether that worked. Browsers hide `navigator.clipboard` from pages without TLS: there, select and copy. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelected(text);
  }
}

/** Next to what has the focus, because a modal dialog makes the rest of the page inert. */
function copySelected(text: string): boolean {
  const focused = document.activeElement;
  const field = document.createElement("textarea");
  field.className = "aloud";
  field.value = text;
  (focused?.parentElement ?? document.body).append(field);
  field.select();
  const isCopied = document.execCommand("copy");
  field.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return isCopied;
}
