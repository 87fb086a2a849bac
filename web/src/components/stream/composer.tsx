/** Saying something, with mentions; and what others said that waits for an acknowledgement (§3.4). */

import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";

import { textIn } from "../../space/fields";
import { isToAll } from "../../space/talk";
import { count, counted, visible } from "../../text";
import { type PageState, type Unsaid, usePageState, useLive } from "../app/page_state";
import { Ago, LongText, Who } from "../values/text_view";

const MENTION = /(?:^|\s)@([A-Za-z0-9][A-Za-z0-9._@-]{0,127})/g;
const LISTED_MAX = 50;
/** So long something may be on its way before that is worth a word. */
const SLOW_MS = 500;

export function Composer() {
  const page = usePageState();
  const { participants } = page.space;
  const text = page.saying;
  const pick = useSignal(0);
  const box = useRef<HTMLTextAreaElement>(null);
  const may = page.mayTalk.value;
  const typing = /(?:^|\s)@([A-Za-z0-9._@-]*)$/.exec(text.value)?.[1];
  const offered =
    typing === undefined
      ? []
      : participants.listed.filter(({ id }) => id !== page.space.me && beginsAlike(id, typing)).slice(0, 8);
  const complete = (id: string): void => {
    text.value = text.value.replace(/@[A-Za-z0-9._@-]*$/, `@${id} `);
    pick.value = 0;
    box.current?.focus();
  };
  const say = (): void => {
    const said = text.value.trim();
    if (said === "") return;
    text.value = "";
    void sayIt(page, said);
  };
  const key = (event: KeyboardEvent): void => {
    if (offered.length > 0 && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      pick.value = (pick.value + (event.key === "ArrowDown" ? 1 : offered.length - 1)) % offered.length;
    } else if (offered.length > 0 && (event.key === "Tab" || event.key === "Enter") && typing !== offered[pick.value]?.id) {
      event.preventDefault();
      complete(offered[pick.value]?.id ?? offered[0]?.id ?? "");
    } else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      say();
    }
  };
  return (
    <div class="composer">
      <Acknowledging />
      <UnsaidList />
      {offered.length > 0 && (
        <ul class="mentions" role="listbox" id="mentions" aria-label="participants to mention">
          {offered.map((one, at) => (
            <li
              key={one.id}
              role="option"
              aria-selected={at === pick.value}
              onMouseDown={(event) => (event.preventDefault(), complete(one.id))}
            >
              <Who id={one.id} /> {!one.here && <small class="dim">offline</small>}
            </li>
          ))}
        </ul>
      )}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          say();
        }}
      >
        <textarea
          ref={box}
          id="say"
          rows={Math.min(8, text.value.split("\n").length)}
          value={text.value}
          disabled={!may}
          placeholder={may ? "Write a message (c). Use @ to address someone." : "You are not allowed to chat here."}
          aria-label="message"
          aria-controls={offered.length > 0 ? "mentions" : undefined}
          onInput={(event) => ((text.value = event.currentTarget.value), (pick.value = 0))}
          onKeyDown={key}
        />
        <button type="submit" disabled={!may || text.value.trim() === ""}>
          Send
        </button>
      </form>
    </div>
  );
}

/** Say it; as long as it has not arrived, it is listed, for nobody else sees it. */
async function sayIt(page: PageState, text: string): Promise<void> {
  const mentioned = [...text.matchAll(MENTION)].map((match) => match[1] ?? "");
  const to = [...new Set(mentioned.filter((id) => page.space.participants.get(id) !== undefined))];
  const format = /[*_`#[\]>|~]|^\s*[-\d]/m.test(text) ? "markdown" : "plain";
  const unsaid: Unsaid = { text, hasFailed: false };
  const list = (): void => void (page.unsaid.value = [...page.unsaid.value, unsaid]);
  const timer = window.setTimeout(list, page.state.peek().is === "live" ? SLOW_MS : 0);
  const echo = await page.send({ kind: "chat", ...(to.length > 0 ? { to } : {}), payload: { text, format } });
  window.clearTimeout(timer);
  forget(page, unsaid);
  if (echo !== null) return;
  if (page.saying.value === "") page.saying.value = text;
  else page.unsaid.value = [...page.unsaid.value, { text, hasFailed: true }];
}

function forget(page: PageState, unsaid: Unsaid): void {
  page.unsaid.value = page.unsaid.value.filter((one) => one !== unsaid);
}

function UnsaidList() {
  const page = usePageState();
  const again = (one: Unsaid): void => {
    forget(page, one);
    void sayIt(page, one.text);
  };
  return (
    <div class={page.unsaid.value.length > 0 ? "queue unsaid" : ""} role="status">
      {page.unsaid.value.length > 0 && (
        <ul>
          {page.unsaid.value.map((one, at) => (
            <li key={at}>
              <small>{one.hasFailed ? "not sent" : "waiting to be sent"}</small>
              <LongText text={visible(one.text, 200)} />
              {one.hasFailed && (
                <>
                  <button type="button" class="small" onClick={() => again(one)}>
                    Send again
                  </button>
                  <button type="button" class="small" onClick={() => forget(page, one)}>
                    Discard
                  </button>
                </>
              )}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function beginsAlike(id: string, typed: string): boolean {
  return id.toLowerCase().startsWith(typed.toLowerCase());
}

function Acknowledging() {
  const page = useLive();
  const isOpen = useSignal(false);
  const { chats } = page.space;
  const [waiting, unheard] = [chats.waiting, chats.unheard];
  const toMe = waiting.filter((chat) => !isToAll(chat)).length;
  const parts = [
    toMe > 0 && `${counted(toMe, "unacknowledged message")} to you`,
    waiting.length > toMe && `${counted(waiting.length - toMe, "unacknowledged message")} to everyone`,
    unheard.length > 0 && `${count(unheard.length)} of your messages ${unheard.length === 1 ? "is" : "are"} unacknowledged`,
  ];
  if (waiting.length === 0 && unheard.length === 0) return null;
  const acknowledge = (id: string, to: string): void => {
    void page.send({ kind: "chat/acknowledge", to: [to], correlation_id: [id], payload: { status: "read" } });
  };
  const cancel = (id: string, to: string[] | undefined): void => {
    const payload = { reason: "no_longer_needed" };
    void page.send({ kind: "chat/cancel", ...(to === undefined ? {} : { to }), correlation_id: [id], payload });
  };
  return (
    <details class="acknowledging" open={isOpen.value} onToggle={(event) => (isOpen.value = event.currentTarget.open)}>
      <summary>
        {parts.filter((part) => part !== false).join(", ")}
      </summary>
      {isOpen.value && (
        <div class="queue">
          <div class="queue-tools">
            {waiting.length > 0 && (
              <button
                type="button"
                class="small"
                onClick={() => waiting.forEach(({ envelope }) => acknowledge(envelope.id, envelope.from))}
              >
                Acknowledge all
              </button>
            )}
            {unheard.length > 0 && (
              <button type="button" class="small" onClick={() => unheard.forEach(({ envelope }) => cancel(envelope.id, envelope.to))}>
                Cancel all your messages
              </button>
            )}
          </div>
          <ul>
            {[...waiting.slice(-LISTED_MAX), ...unheard.slice(-LISTED_MAX)].map(({ envelope, at }) => (
              <li key={envelope.id}>
                <Who id={envelope.from} />
                <LongText text={visible(textIn(envelope.payload?.text) ?? "", 200)} />
                <small class="dim">
                  <Ago at={at} />
                </small>
                {envelope.from === page.space.me ? (
                  <button type="button" class="small" onClick={() => cancel(envelope.id, envelope.to)}>
                    Cancel
                  </button>
                ) : (
                  <button type="button" class="small" onClick={() => acknowledge(envelope.id, envelope.from)}>
                    Acknowledge
                  </button>
                )}
              </li>
            ))}
          </ul>
        </div>
      )}
    </details>
  );
}
