/** The whole page, once signed in. */

import "../../style/page.css";
import "../../style/cards.css";
import "../../style/stream.css";
import "../../style/autopilot.css";
import "../../style/dialogs.css";
import "../../style/phone.css";

import { useEffect, useMemo } from "preact/hooks";

import type { SignedIn } from "../../signin";
import type { Problem } from "../../wire";
import { LadderDialog } from "../autopilot/ladder_dialog";
import { AutopilotPane } from "../autopilot/pane";
import { AcceptDialog } from "../autopilot/rule_card";
import { ChainDialog } from "../proposals/chain_dialog";
import { ControlDialog } from "../people/control_dialog";
import { PageState, PageStateProvider, usePageState } from "./page_state";
import { EditDialog } from "../proposals/edit_dialog";
import { GrantDialog, RevokeDialog } from "../people/grant_dialogs";
import { Header } from "./header";
import { listenToKeys } from "./keys";
import { InviteDialog, KickDialog } from "../people/membership_dialogs";
import { People } from "../people/participant_list";
import { ClearDialog, RejectDialog } from "../proposals/reject_dialog";
import { HistoryDialog, KeysDialog, RawDialog } from "./small_dialogs";
import { Stream } from "../stream/stream_pane";
import { Timeline } from "../stream/timeline";
import { Waiting } from "../review/waiting_list";
import { Words } from "../values/text_view";

interface Props {
  who: SignedIn;
  onRefused(problem: Problem): void;
  onSignOut(): void;
}

export function App({ who, onRefused, onSignOut }: Props) {
  const page = useMemo(() => new PageState(who, onRefused), [who]);
  useEffect(() => {
    void page.start();
    const deaf = listenToKeys(page);
    return () => {
      deaf();
      page.stop();
      document.title = "mew";
    };
  }, [page]);
  return (
    <PageStateProvider value={page}>
      <Title />
      <Header onSignOut={onSignOut} />
      <Panes />
      <Dialogs />
      <Notices />
    </PageStateProvider>
  );
}

function Title() {
  const page = usePageState();
  const waiting = page.waiting.value.length;
  useEffect(() => {
    document.title = `${waiting > 0 ? `(${waiting}) ` : ""}${page.who.space} · mew`;
  }, [waiting]);
  return null;
}

function Panes() {
  const page = usePageState();
  const pane = page.pane.value;
  return (
    <main class="panes" data-pane={pane}>
      <Waiting />
      {pane === "timeline" ? <Timeline /> : pane === "autopilot" ? <AutopilotPane /> : <Stream />}
      <People />
    </main>
  );
}

function Dialogs() {
  const dialog = usePageState().dialog.value;
  switch (dialog?.is) {
    case "keys":
      return <KeysDialog />;
    case "raw":
      return <RawDialog envelope={dialog.envelope} />;
    case "chain":
      return <ChainDialog id={dialog.proposal} />;
    case "edit":
      return <EditDialog id={dialog.proposal} to={dialog.to} />;
    case "reject":
      return <RejectDialog proposals={dialog.proposals} />;
    case "clear":
      return <ClearDialog proposals={dialog.proposals} />;
    case "ladder":
      return <LadderDialog id={dialog.proposal} />;
    case "accept":
      return <AcceptDialog id={dialog.rule} />;
    case "control":
      return <ControlDialog participant={dialog.participant} kind={dialog.kind} />;
    case "grant":
      return <GrantDialog participant={dialog.participant} />;
    case "revoke":
      return <RevokeDialog participant={dialog.participant} grant={dialog.grant} />;
    case "invite":
      return <InviteDialog />;
    case "kick":
      return <KickDialog participant={dialog.participant} />;
    case "history":
      return <HistoryDialog />;
    default:
      return null;
  }
}

function Notices() {
  const page = usePageState();
  return (
    <div class="notices" role="status" aria-live="polite">
      {page.notices.value.map((notice) => (
        <div key={notice.key} class={`notice ${notice.tone}`}>
          <Words text={notice.text} most={400} />
          <button type="button" class="quiet" aria-label="dismiss" onClick={() => page.dismiss(notice.key)}>
            ✕
          </button>
        </div>
      ))}
    </div>
  );
}
