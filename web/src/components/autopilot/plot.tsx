/** Plots of the autopilot as inline SVG: bars for each day, approvals above the line and rejections below. */

import type { DayFigures, RuleDay } from "../../space/autopilot";
import { count } from "../../text";

const [BAR, GAP, ABOVE, BELOW, LABEL] = [14, 4, 56, 24, 14];
const DAYS_MAX = 30;
const RECENT_MAX = 60;

interface Column {
  day: string;
  /** Stacked from the line upwards. */
  above: [tone: string, amount: number][];
  below: number;
}

function Bars({ columns, label, below: against }: { columns: Column[]; label: string; below: string }) {
  const most = Math.max(1, ...columns.map(({ above }) => above.reduce((sum, [, amount]) => sum + amount, 0)));
  const worst = Math.max(1, ...columns.map(({ below }) => below));
  const width = Math.max(120, columns.length * (BAR + GAP));
  const last = columns.at(-1)?.day ?? "";
  return (
    <svg class="plot" role="img" aria-label={label} width={width} height={ABOVE + BELOW + LABEL} viewBox={`0 0 ${width} ${ABOVE + BELOW + LABEL}`}>
      <line class="plot-line" x1={0} x2={width} y1={ABOVE} y2={ABOVE} />
      {columns.map(({ day, above, below }, at) => {
        let y = ABOVE;
        const x = at * (BAR + GAP);
        return (
          <g key={day}>
            <title>{`${day}: ${[...above, [against, below] as const].map(([tone, amount]) => `${count(amount)} ${tone}`).join(", ")}`}</title>
            {above.map(([tone, amount]) => {
              const height = (amount / most) * (ABOVE - 4);
              y -= height;
              return height > 0 && <rect key={tone} class={`plot-${tone.replaceAll(" ", "-")}`} x={x} y={y} width={BAR} height={Math.max(2, height)} />;
            })}
            {below > 0 && <rect class="plot-rejected" x={x} y={ABOVE + 1} width={BAR} height={Math.max(3, (below / worst) * (BELOW - 2))} />}
          </g>
        );
      })}
      <text class="tick-name" x={0} y={ABOVE + BELOW + LABEL - 2}>
        {columns[0]?.day ?? ""}
      </text>
      {columns.length * (BAR + GAP) > 160 && (
        <text class="tick-name" x={width} y={ABOVE + BELOW + LABEL - 2} text-anchor="end">
          {last}
        </text>
      )}
    </svg>
  );
}

/** Approvals, automatic decisions and rejections of what one rule covers. */
export function RulePlot({ days, recent }: { days: RuleDay[]; recent: boolean[] }) {
  if (days.length === 0) return null;
  const shown = days.slice(-DAYS_MAX);
  const sum = (of: (day: RuleDay) => number): string => count(shown.reduce((all, day) => all + of(day), 0));
  const label = `${sum((day) => day.approved)} approved by people, ${sum((day) => day.rejected)} rejected, ${sum((day) => day.alone)} decided by the autopilot`;
  const columns = shown.map(({ day, approved, rejected, alone }): Column => ({ day, above: [["approved", approved], ["alone", alone]], below: rejected }));
  return (
    <figure class="plots">
      <Bars columns={columns} label={label} below="rejected" />
      <figcaption>
        <i class="swatch plot-approved" /> approved <i class="swatch plot-alone" /> by the autopilot <i class="swatch plot-rejected" /> rejected
      </figcaption>
      <Recent recent={recent.slice(-RECENT_MAX)} />
    </figure>
  );
}

/** The latest reviewed calls in their order, the newest on the right. */
function Recent({ recent }: { recent: boolean[] }) {
  if (recent.length === 0) return null;
  const rejected = recent.filter((approved) => !approved).length;
  return (
    <svg
      class="plot"
      role="img"
      aria-label={`the latest ${recent.length} reviewed calls: ${recent.length - rejected} approved, ${rejected} rejected`}
      width={recent.length * 6}
      height={14}
    >
      {recent.map((approved, at) =>
        approved ? (
          <rect key={at} class="plot-approved" x={at * 6} y={0} width={4} height={7} />
        ) : (
          <rect key={at} class="plot-rejected" x={at * 6} y={7} width={4} height={7} />
        ),
      )}
    </svg>
  );
}

/** Proposals of each day: asked, and decided by the autopilot; below, those that a person disagreed with. */
export function DaysPlot({ days }: { days: DayFigures[] }) {
  if (days.length < 2) return null;
  const shown = days.slice(-DAYS_MAX);
  const columns = shown.map(
    ({ day, proposals, alone, disagreed, objected }): Column => ({
      day,
      above: [
        ["alone", alone],
        ["asked", Math.max(0, proposals - alone)],
      ],
      below: disagreed + objected,
    }),
  );
  return (
    <figure class="plots">
      <Bars columns={columns} label={`proposals of ${shown.length} days: asked, and decided by the autopilot`} below="disagreed" />
      <figcaption>
        <i class="swatch plot-alone" /> by the autopilot <i class="swatch plot-asked" /> asked <i class="swatch plot-rejected" /> disagreed
      </figcaption>
    </figure>
  );
}
