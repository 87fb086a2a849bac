/** Signing in: with a link or a pasted token, then choosing a space. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import { Problem, type SpaceShown, spaces } from "./http";
import { type SignedIn, discard, mayBeToken, remember, signInByCode } from "./signin";

interface Props {
  /** A code that was in the address. */
  code: string | null;
  /** Who one is here already. */
  present: SignedIn | null;
  /** Why one is here again: signed out, removed, the token no longer good. */
  notice: string | null;
  onSignedIn(who: SignedIn): void;
}

type Step =
  | { is: "token" }
  | { is: "space"; token: string; keep: boolean; spaces: SpaceShown[] }
  /** The link is somebody else's than who is signed in here: nobody becomes another by following a link. */
  | { is: "other"; present: SignedIn; linked: SignedIn };

export function Entrance({ code, present, notice, onSignedIn }: Props) {
  const step = useSignal<Step>({ is: "token" });
  const said = useSignal(notice === null ? null : `${notice.charAt(0).toUpperCase()}${notice.slice(1)}.`);
  const busy = useSignal(code !== null);

  const trying = async (attempt: () => Promise<void>): Promise<void> => {
    busy.value = true;
    said.value = null;
    try {
      await attempt();
    } catch (error) {
      said.value = error instanceof Problem ? sentence(error) : "An unexpected error occurred. Try again.";
    }
    busy.value = false;
  };
  const redeem = (found: string): Promise<void> =>
    trying(async () => {
      const linked = await signInByCode(found);
      if (present === null || isSame(present, linked)) enterByLink(linked);
      else step.value = { is: "other", present, linked };
    });
  const paste = (token: string, keep: boolean): Promise<void> =>
    trying(async () => {
      if (!mayBeToken(token)) throw new Problem(0, "no_token_at_all", "This is not a token: tokens contain no spaces or commas.");
      const found = await spaces(token);
      const only = found.length === 1 ? found[0] : undefined;
      if (only !== undefined) enter(only, token, keep);
      else step.value = { is: "space", token, keep, spaces: found };
    });
  const enter = (space: SpaceShown, token: string, keep: boolean): void => {
    const who = { space: space.id, token, participant: space.participant };
    if (keep) remember(who, "browser");
    onSignedIn(who);
  };
  const enterByLink = (linked: SignedIn): void => {
    remember(linked, "tab"); // the link is used up: a reload must not need another
    onSignedIn(linked);
  };

  useEffect(() => {
    if (code !== null) void redeem(code);
  }, [code]);

  const now = step.value;
  return (
    <main class="entrance">
      <h1>mew</h1>
      <p role="status" class={!busy.value && said.value !== null ? "said telling" : "said"}>
        {busy.value ? "Signing in…" : said.value}
      </p>
      {now.is === "token" && <TokenForm busy={busy.value} onToken={paste} />}
      {now.is === "space" && <SpaceChoice spaces={now.spaces} onChoose={(space) => enter(space, now.token, now.keep)} />}
      {now.is === "other" && <OtherChoice present={now.present} linked={now.linked} onStay={onSignedIn} onBecome={enterByLink} />}
      {present !== null && now.is === "token" && !busy.value && (
        <button type="button" onClick={() => onSignedIn(present)}>
          Stay signed in as <bdi>{present.participant}</bdi>
        </button>
      )}
    </main>
  );
}

function TokenForm({ busy, onToken }: { busy: boolean; onToken(token: string, keep: boolean): Promise<void> }) {
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    void onToken(String(form.get("token") ?? "").trim(), form.has("keep"));
  };
  return (
    <form onSubmit={submit}>
      <p>Were you invited? Open the link you were sent. A link works only once: if it is used up, ask for a new one.</p>
      <p>
        Do you run the space yourself? Run <code>mew page</code> in the directory of its space.yaml to get a sign-in link, or paste your token.
      </p>
      <label for="token">Token</label>
      <input id="token" name="token" type="password" autocomplete="off" spellcheck={false} required autofocus />
      <label class="check">
        <input name="keep" type="checkbox" /> Remember it in this browser
      </label>
      <button type="submit" disabled={busy}>
        Sign in
      </button>
    </form>
  );
}

function SpaceChoice({ spaces, onChoose }: { spaces: SpaceShown[]; onChoose(space: SpaceShown): void }) {
  return (
    <section aria-labelledby="which">
      <h2 id="which">Choose a space</h2>
      <ul>
        {spaces.map((space) => (
          <li key={space.id}>
            <button type="button" onClick={() => onChoose(space)}>
              <strong>{space.name || space.id}</strong> as <bdi>{space.participant}</bdi>
              <small>{space.description}</small>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

interface OtherProps {
  present: SignedIn;
  linked: SignedIn;
  onStay(who: SignedIn): void;
  onBecome(who: SignedIn): void;
}

function OtherChoice({ present, linked, onStay, onBecome }: OtherProps) {
  const stay = (): void => {
    onStay(present);
    void discard(linked);
  };
  return (
    <section aria-labelledby="whose">
      <h2 id="whose">This link is for a different participant</h2>
      <ul>
        <li>
          <button type="button" onClick={stay}>
            Stay signed in as <Who who={present} />
          </button>
        </li>
        <li>
          <button type="button" onClick={() => onBecome(linked)}>
            Switch to <Who who={linked} />
          </button>
        </li>
      </ul>
    </section>
  );
}

function Who({ who }: { who: SignedIn }) {
  return (
    <>
      <strong>
        <bdi>{who.participant}</bdi>
      </strong>{" "}
      in <bdi>{who.space}</bdi>
    </>
  );
}

function isSame(one: SignedIn, other: SignedIn): boolean {
  return one.space === other.space && one.participant === other.participant;
}

function sentence(problem: Problem): string {
  if (problem.code === "bad_link") return "This link has been used or has expired. Ask the person who invited you for a new one; for your own space, run: mew page";
  if (problem.code === "bad_token") return "This token is not valid for any space on this gateway.";
  return problem.message;
}
