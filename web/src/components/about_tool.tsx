/** A tool that is to be used: what its participant says of it, and whether it says so still. */

import { useEffect } from "preact/hooks";

import { digest } from "../space/digest";
import type { Proposal } from "../space/proposals";
import type { Tool } from "../space/tools";
import { visible } from "../text";
import { useLive } from "./desk";
import { LongText } from "./text_view";
import { Changes } from "./values_view";

/** `told`: what changed is said more exactly elsewhere. */
export function AboutTool({ tool, told }: { tool: Tool; told: boolean }) {
  return (
    <div class="about-tool">
      {tool.description !== null && <LongText text={tool.description} first={400} />}
      <p class="hints">
        {hints(tool).map(([words, tone]) => (
          <span key={words} class={`hint ${tone}`}>
            {words}
          </span>
        ))}
      </p>
      {tool.changed.length > 0 && !told && (
        <p class="warning" role="note">
          Not what it was when first seen here: {tool.changed.map((part) => visible(part, 64)).join(", ")} changed.
        </p>
      )}
    </div>
  );
}

/** The tool's own word for what it is, and no more than that. */
function hints(tool: Tool): [words: string, tone: string][] {
  const { readOnlyHint: reads, destructiveHint: destroys, idempotentHint: repeats, openWorldHint: outside } = tool.annotations;
  const found: [string, string][] = [];
  if (reads === true) found.push(["says it only reads", "calm"]);
  if (destroys === true) found.push(["says it is destructive", "grave"]);
  if (destroys === false && reads !== true) found.push(["says it is not destructive", "calm"]);
  if (destroys === undefined && reads !== true) found.push(["does not say whether it is destructive", "unsure"]);
  if (repeats === true) found.push(["says doing it twice is as doing it once", "calm"]);
  if (outside === true) found.push(["says it reaches outside", "unsure"]);
  return found;
}

const PARTS: Record<string, string> = {
  description: "what it says of itself",
  inputSchema: "what it takes",
  outputSchema: "what it gives",
  annotations: "what it says it may do",
};

/** What was proposed may not be what would run: the tool is not what it was when somebody proposed to use it. */
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
            <strong>This tool changed since it was proposed:</strong> {parts.map(([, words]) => words).join(", ")}.
          </p>
          <details>
            <summary>How it changed</summary>
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
