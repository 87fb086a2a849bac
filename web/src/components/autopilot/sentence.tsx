/** Words of the autopilot: what stands in backticks is shown as code. */

import { Words } from "../values/text_view";

export function Sentence({ text }: { text: string }) {
  return (
    <>
      {text.split("`").map((part, at) =>
        at % 2 === 1 ? (
          <code key={at}>
            <Words text={part} />
          </code>
        ) : (
          part !== "" && <Words key={at} text={part} />
        ),
      )}
    </>
  );
}
