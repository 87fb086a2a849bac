/** The header: the space, the state of the connection, and the settings of this browser. */

import { StaySignedIn } from "../../stay";
import type { State } from "../../wire";
import { count, visible } from "../../text";
import { type Pane, usePageState, useLive } from "./page_state";

const PANES: [pane: Pane, words: string][] = [
  ["waiting", "Waiting"],
  ["stream", "Stream"],
  ["timeline", "Timeline"],
  ["autopilot", "Autopilot"],
  ["people", "Participants"],
];

export function Header({ onSignOut }: { onSignOut(): void }) {
  const page = usePageState();
  const { notifications, settings } = page;
  const theme = settings.theme.value;
  return (
    <header class="top">
      <h1>
        <span class="brand">mew</span> <span class="space-name">{visible(page.who.space, 60)}</span>
      </h1>
      <ConnectionStatus />
      <nav class="views" aria-label="views">
        {PANES.map(([pane, words]) => (
          <button
            key={pane}
            type="button"
            class={`view-${pane}`}
            aria-current={page.pane.value === pane ? "page" : undefined}
            onClick={() => (page.pane.value = pane)}
          >
            {words}
            {pane === "autopilot" && <Suggested />}
            {pane === "waiting" && page.waiting.value.length > 0 && <span class="count some">{count(page.waiting.value.length)}</span>}
          </button>
        ))}
      </nav>
      <div class="top-tools">
        <button
          type="button"
          class="quiet"
          aria-pressed={notifications.wanted.value}
          title="Show a notification when something is waiting and this page is in the background"
          onClick={() => void notifications.toggle().then((why) => why !== null && page.tell(why, "bad"))}
        >
          {notifications.wanted.value ? "Notifications on" : "Notify me"}
        </button>
        <button type="button" class="quiet" title="Light, dark or system theme (d)" onClick={() => settings.nextTheme()}>
          {theme === "system" ? "Theme" : theme === "light" ? "Light" : "Dark"}
        </button>
        <button type="button" class="quiet" title="Keyboard shortcuts (?)" aria-label="keyboard shortcuts" onClick={() => (page.dialog.value = { is: "keys" })}>
          ?
        </button>
        <StaySignedIn who={page.who} />
        <button type="button" class="quiet" onClick={onSignOut} title={`You are signed in as ${visible(page.who.participant, 60)}.`}>
          Sign out
        </button>
      </div>
    </header>
  );
}

function Suggested() {
  const suggested = useLive().space.autopilot.rules.filter(({ state }) => state === "suggested").length;
  return suggested === 0 ? null : (
    <span class="count some" title="suggested rules">
      {count(suggested)}
    </span>
  );
}

const WORDS: Record<State["is"], string> = {
  connecting: "connecting…",
  "catching-up": "catching up…",
  live: "live",
  waiting: "disconnected",
  closed: "closed",
};

function ConnectionStatus() {
  const page = usePageState();
  const state = page.state.value;
  const seconds = state.is === "waiting" ? Math.max(0, Math.ceil((state.againAt - page.now.value) / 1000)) : 0;
  return (
    <span class={`standing ${state.is}`} data-state={state.is} role="status" title={"why" in state ? state.why : undefined}>
      <i aria-hidden="true" />
      {WORDS[state.is]}
      {state.is === "waiting" && <span aria-hidden="true">{seconds > 0 ? `, retrying in ${seconds} s` : ", retrying…"}</span>}
    </span>
  );
}
