/** Markdown's tree as elements: those in this file and no others. */

import { type Block, type Inline, beginsWithHost, hostOf, isSafeAddress, parseMarkdown } from "../../markdown";
import { visible } from "../../text";
import { Words } from "./text_view";

const PARSED_MAX = 20_000;
const kept = new WeakMap<object, Block[]>();

/** `of` is the envelope it came in: what was parsed once is not parsed again. */
export function Markdown({ text, of }: { text: string; of: object }) {
  let blocks = kept.get(of);
  if (blocks === undefined) {
    blocks = parseMarkdown(text.slice(0, PARSED_MAX));
    kept.set(of, blocks);
  }
  return <div class="markdown">{blocks.map(block)}</div>;
}

function block(one: Block, at: number): preact.JSX.Element {
  switch (one.is) {
    case "paragraph":
      return <p key={at}>{one.inside.map(inline)}</p>;
    case "heading":
      return (
        <p key={at} class={`heading level-${one.level}`}>
          {one.inside.map(inline)}
        </p>
      );
    case "code":
      return (
        <pre key={at} tabIndex={0}>
          <code>
            <Words text={one.text} most={PARSED_MAX} />
          </code>
        </pre>
      );
    case "quote":
      return <blockquote key={at}>{one.inside.map(block)}</blockquote>;
    case "list": {
      const items = one.items.map((item, place) => {
        const [only, ...more] = item;
        const isLine = only?.is === "paragraph" && more.length === 0;
        return <li key={place}>{isLine ? only.inside.map(inline) : item.map(block)}</li>;
      });
      return one.ordered ? (
        <ol key={at} start={one.start}>
          {items}
        </ol>
      ) : (
        <ul key={at}>{items}</ul>
      );
    }
    case "table":
      return (
        <div class="table" key={at} tabIndex={0}>
          <table>
            <thead>
              <tr>
                {one.head.map((cell, place) => (
                  <th key={place}>{cell.map(inline)}</th>
                ))}
              </tr>
            </thead>
            <tbody>
              {one.rows.map((row, place) => (
                <tr key={place}>
                  {row.map((cell, column) => (
                    <td key={column}>{cell.map(inline)}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      );
    case "rule":
      return <hr key={at} />;
  }
}

function inline(one: Inline, at: number): preact.ComponentChild {
  switch (one.is) {
    case "text":
      return <Words key={at} text={one.text} most={PARSED_MAX} />;
    case "code":
      return (
        <code key={at}>
          <Words text={one.text} most={PARSED_MAX} />
        </code>
      );
    case "strong":
      return <strong key={at}>{one.inside.map(inline)}</strong>;
    case "emphasis":
      return <em key={at}>{one.inside.map(inline)}</em>;
    case "struck":
      return <s key={at}>{one.inside.map(inline)}</s>;
    case "break":
      return <br key={at} />;
    case "image":
      return (
        <span key={at} class="image" title="Images are not loaded.">
          [image: {visible(one.text, 80) || "no description"}, {visible(one.address, 120)}]
        </span>
      );
    case "link":
      return <Link key={at} inside={one.inside} address={one.address} />;
  }
}

/** A link says where it leads, whatever its words are, and opens apart. */
function Link({ inside, address }: { inside: Inline[]; address: string }) {
  const words = inside.map((one) => (one.is === "text" ? one.text : "")).join("");
  if (!isSafeAddress(address)) {
    return (
      <span class="no-link">
        {inside.map(inline)} <small>[leads to {visible(address, 80) || "nowhere"}; not a link here]</small>
      </span>
    );
  }
  return (
    <a href={address} target="_blank" rel="noopener noreferrer nofollow">
      {words === address ? <Words text={address} most={120} /> : inside.map(inline)}
      {(words !== address || !beginsWithHost(address)) && <small class="leads"> ({visible(hostOf(address), 80)})</small>}
    </a>
  );
}
