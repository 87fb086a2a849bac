/** The tool of a proposal: what its participant says about it, and whether that has changed. */

import { useEffect } from "preact/hooks";

import { digest } from "../../space/digest";
import type { Proposal } from "../../space/proposals";
import type { Tool } from "../../space/tools";
import { visible } from "../../text";
import { useLive } from "../app/page_state";
import { LongText } from "../values/text_view";
import { Changes } from "../values/arguments_view";

/** `told`: the change is described in detail elsewhere. */
export function AboutTool({ tool, told }: { tool: Tool; told: boolean }) {
  return (
    <div class="about-tool">
      {tool.description !== null && <LongText text={tool.description} first={400} />}
      <p class="hints">
        {hints(tool).map(([words, tone, title]) => (
          <span key={words} class={`hint ${tone}`} title={title}>
            {words}
          </span>
        ))}
      </p>
      {tool.changed.length > 0 && !told && (
        <p class="warning" role="note">
          Changed since it was first seen here: {tool.changed.map((part) => visible(part, 64)).join(", ")}.
        </p>
      )}
    </div>
  );
}

/** The tool's annotations: its own claims, which nobody has checked. */
function hints(tool: Tool): [words: string, tone: string, title: string][] {
  const { readOnlyHint: reads, destructiveHint: destroys, idempotentHint: repeats, openWorldHint: outside } = tool.annotations;
  const found: [string, string, string][] = [];
  if (reads === true) found.push(["claims to be read-only", "calm", "The tool says that it changes nothing. Nobody has checked that."]);
  if (destroys === true) found.push(["destructive", "grave", "The tool says that it may delete or overwrite data."]);
  if (destroys === false && reads !== true) found.push(["claims not to be destructive", "calm", "The tool says that it only adds data. Nobody has checked that."]);
  if (destroys === undefined && reads !== true) found.push(["may be destructive", "unsure", "The tool does not say whether it is destructive."]);
  if (repeats === true) found.push(["claims to be idempotent", "calm", "The tool says that calling it again with the same arguments has no further effect."]);
  if (outside === true) found.push(["open world", "unsure", "The tool says that it interacts with systems outside this space."]);
  return found;
}

const PARTS: Record<string, string> = {
  description: "its description",
  inputSchema: "its input schema",
  outputSchema: "its output schema",
  annotations: "its annotations",
};

/** A warning that the tool is not what it was when the call was proposed. */
export function ToolChanged({ proposal, participant }: { proposal: Proposal; participant: string }) {
  const { decisions, space } = useLive();
  const change = space.tools.changedSince(proposal.id, participant);
  const seen = change === null ? "" : JSON.stringify([change.is.listed, change.changes]);
  useEffect(() => {
    if (seen !== "") decisions.hold();
  }, [seen]);
  if (change === null) return null;
  const parts = Object.entries(PARTS).filter(([part]) => change.changes.some(({ path }) => path.split(/[.[]/, 1)[0] === part));
  const before = digest(proposal.to, proposal.method, proposal.params, change.was.schema);
  return (
    <div class="tool-changed" role="alert">
      {!change.is.listed && <p>{visible(participant, 60)} no longer lists this tool.</p>}
      {change.changes.length > 0 && (
        <>
          <p>
            <strong>This tool has changed since the call was proposed:</strong> {parts.map(([, words]) => words).join(", ")}.
          </p>
          <details>
            <summary>Show the changes</summary>
            <Changes changes={change.changes} />
          </details>
          {proposal.to.length === 1 && before !== null && (
            <p class="dim digest">
              digest as proposed <code>{before.slice(0, 16)}</code>
            </p>
          )}
        </>
      )}
    </div>
  );
}
