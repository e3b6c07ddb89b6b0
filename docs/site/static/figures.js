// Figures that answer the reader's hand in a page without a kernel. docs/site/figures.py puts the
// numbers and the words, in the page's language, beside each <div class="live">. Nothing is loaded.
//
// A figure is a function that adds its controls and returns another one, `draw`: that reads the
// controls and returns pictures, a legend and a sentence. Any change redraws the figure.
"use strict";

const maker = (space) => (tag, attributes = {}, ...children) => {
  const node = document.createElementNS(space, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
};
const html = maker("http://www.w3.org/1999/xhtml");
const svg = maker("http://www.w3.org/2000/svg");
const count = (length) => Array.from({ length }, (_, i) => i);
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
const number = (value, digits = 0) =>
  value.toLocaleString(document.documentElement.lang, {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
const bytes = (kilobytes) =>
  kilobytes < 1000 ? `${number(kilobytes)} kB` : `${number(kilobytes / 1000, 1)} MB`;

// --- controls --------------------------------------------------------------------------------

/** A place in the page: its controls, its pictures and its sentence. */
class Figure {
  constructor(root, words) {
    this.words = words;
    this.controls = html("div", { class: "live-controls" });
    this.pictures = html("div", { class: "live-pictures" });
    this.sentence = html("p", { class: "live-sentence", role: "status" });
    root.append(this.controls, this.pictures, this.sentence);
  }

  /** A text in the reader's language; {name} stands for a value. */
  say(key, values = {}) {
    return this.words[key].replace(/\{(\w+)\}/g, (_, name) => values[name]);
  }

  /** A slider over a list of values; with `steps`, buttons go back and forward. */
  slider(key, values, first, { show = String, steps = false } = {}) {
    const text = this.say(key);
    const input = html("input", { type: "range", min: 0, max: values.length - 1, "data-key": key });
    const shown = html("output");
    const control = {
      get value() {
        return values[+input.value];
      },
      set value(value) {
        input.value = values.indexOf(value);
        shown.value = show(value);
        input.setAttribute("aria-valuetext", shown.value);
      },
      limit(length) {
        input.max = length - 1;
        this.value = this.value;
      },
    };
    control.value = first;
    const move = (value) => {
      control.value = value;
      this.redraw();
    };
    input.addEventListener("input", () => move(control.value));
    const label = html("label", {}, html("span", {}, text), input, shown);
    const button = (sign, name, step) => {
      const node = html("button", { type: "button", "aria-label": name }, sign);
      node.addEventListener("click", () => {
        const next = values[+input.value + step];
        if (next !== undefined) move(next);
      });
      return node;
    };
    if (steps) {
      const pair = [button("←", this.say("back"), -1), button("→", this.say("forward"), 1)];
      this.controls.append(html("div", { class: "live-steps" }, label, ...pair));
    } else this.controls.append(label);
    return control;
  }

  /** Radio buttons, one for each value. */
  choice(key, values, first) {
    const control = { value: first };
    const group = html("fieldset", {}, html("legend", {}, this.say(key)));
    for (const value of values) {
      const input = html("input", { type: "radio", name: key, value });
      input.checked = value === first;
      input.addEventListener("change", () => {
        control.value = value;
        this.redraw();
      });
      group.append(html("label", {}, input, this.say(value)));
    }
    this.controls.append(group);
    return control;
  }

  /** Pointing at a mark with data-pick has the same effect as this slider. */
  picks(slider) {
    this.pictures.addEventListener("pointerover", ({ target }) => {
      const value = target.dataset?.pick && Number(target.dataset.pick);
      if (value !== undefined && value !== slider.value) {
        slider.value = value;
        this.redraw();
      }
    });
  }

  redraw() {
    const { pictures, sentence } = this.draw();
    this.pictures.replaceChildren(...pictures);
    this.sentence.textContent = sentence;
  }
}

// --- marks -----------------------------------------------------------------------------------

const picture = (width, height, label, ...marks) =>
  svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label }, ...marks);

const text = (x, y, content, attributes = {}) => svg("text", { x, y, ...attributes }, content);

const disk = ([x, y], name, kind, radius = 13) =>
  svg("g", { class: kind }, svg("circle", { cx: x, cy: y, r: radius }), text(x, y, name));

const line = ([x1, y1], [x2, y2], kind) => svg("line", { x1, y1, x2, y2, class: kind });

/** A line with a head, from the rim of one disk to the rim of another. */
function arrow([x1, y1], [x2, y2], kind, radius = 14) {
  const angle = Math.atan2(y2 - y1, x2 - x1);
  const at = (x, y, turn, far) => [
    x + far * Math.cos(angle + turn),
    y + far * Math.sin(angle + turn),
  ];
  const tip = at(x2, y2, Math.PI, radius);
  const head = [tip, at(...tip, Math.PI - 0.45, 9), at(...tip, Math.PI + 0.45, 9)];
  return svg(
    "g",
    { class: kind },
    line(at(x1, y1, 0, radius), at(...tip, Math.PI, 7), ""),
    svg("polygon", { points: head.join(" ") }),
  );
}

/** Horizontal stacked bars: rows of [label, {kind: value}]; the chosen one stands out. */
function bars(label, rows, kinds, chosen, unit) {
  const most = Math.max(...rows.map(([, parts]) => sum(Object.values(parts))));
  const marks = rows.flatMap(([name, parts], i) => {
    let x = 34;
    const kind = name === chosen ? "chosen" : "other";
    const y = 8 + 26 * i;
    const pieces = kinds.map((each) => {
      const width = (210 * (parts[each] ?? 0)) / most;
      x += width;
      return svg("rect", { x: x - width, y, width, height: 18, class: `kind-${each}` });
    });
    const total = number(sum(Object.values(parts)), 1);
    const end = text(x + 5, y + 9, `${total} ${unit}`, { class: "beside" });
    const begin = text(28, y + 9, name, { class: "before" });
    return svg("g", { class: kind }, begin, ...pieces, end);
  });
  return picture(320, 12 + 26 * rows.length, label, ...marks);
}

const legend = (figure, kinds, parts, unit) =>
  html(
    "ul",
    { class: "live-legend" },
    ...kinds
      .filter((kind) => kind in parts)
      .map((kind) => {
        const value = html("b", { "data-kind": kind }, number(parts[kind], 1));
        const swatch = html("i", { class: `kind-${kind}` });
        return html("li", {}, swatch, `${figure.say(kind)} `, value, ` ${unit}`);
      }),
  );

// --- the four figures ------------------------------------------------------------------------

/** Lesson 01: a frontier, found around the seed, becomes a block; then the next one. */
function growth(figure, { place, edges, samples }) {
  const step = figure.slider("step", count(5), 0, { show: (i) => `${i} / 4`, steps: true });
  const fanout = figure.slider("fanout", [1, 2, 3, 4], 2);
  const at = place.map(([x, y]) => [150 + 62 * x, 150 - 62 * y]);
  const kinds = ["layer-0", "layer-1", "layer-2"];

  return () => {
    const blocks = samples[fanout.value];
    const columns = [blocks[0].sources, blocks[1].sources, [0]];
    const reached = (layer) => step.value > 2 * (1 - layer); // its frontier is drawn
    const made = (layer) => step.value > 2 * (1 - layer) + 1; // its block is, too
    const graph = edges.map(([u, v]) => arrow(at[u], at[v], "faint"));
    const kind = at.map(() => "faint");
    const spot = (column, i) => [40 + 110 * column, 42 + 28 * i];
    const drawn = [];
    const disks = [];
    for (const layer of [0, 1]) {
      const { sources, destinations, edges: pairs } = blocks[layer];
      if (reached(layer)) {
        sources.forEach((node) => (kind[node] = kinds[layer]));
        graph.push(...pairs.map(([u, v]) => arrow(at[sources[u]], at[sources[v]], kinds[layer])));
      }
      const x = (spot(layer, 0)[0] + spot(layer + 1, 0)[0]) / 2;
      const style = { class: "name", opacity: made(layer) ? 1 : 0.5 };
      drawn.push(text(x, 14, `blocks[${layer}]`, style));
      if (made(layer)) {
        const ends = (u, v) => [spot(layer, u), spot(layer + 1, v)];
        drawn.push(...count(destinations).map((i) => line(...ends(i, i), "self")));
        drawn.push(...pairs.map(([u, v]) => arrow(...ends(u, v), kinds[layer])));
      }
    }
    [1, 2].filter((layer) => layer === 2 || reached(layer)).forEach((layer) => {
      columns[layer].forEach((node) => (kind[node] = kinds[layer]));
    });
    columns.forEach((nodes, layer) => {
      if (layer === 2 || made(layer))
        nodes.forEach((node, i) => disks.push(disk(spot(layer, i), node, kinds[layer])));
    });
    const layer = step.value > 2 ? 0 : 1;
    const { sources, destinations, edges: pairs } = blocks[layer];
    return {
      pictures: [
        picture(300, 300, figure.say("graph"), ...graph, ...at.map((p, i) => disk(p, i, kind[i]))),
        picture(300, 300, figure.say("blocks"), ...drawn, ...disks),
      ],
      sentence: figure.say(["start", "frontier", "block"][step.value && 2 - (step.value % 2)], {
        layer,
        nodes: sources.slice(0, destinations).join(figure.say("comma")),
        edges: pairs.length,
        sources: sources.length,
        destinations,
      }),
    };
  };
}

/** Lesson 05: the parts of a small graph, what is cut, and who keeps a copy. */
function cut(figure, { place, edges, partitions }) {
  const parts = figure.slider("parts", [2, 3, 4, 5, 6, 7, 8], 4);
  const method = figure.choice("method", ["metis", "random"], "metis");
  const node = figure.slider("node", count(place.length), 0);
  figure.picks(node);
  const at = place.map(([x, y]) => [170 + 155 * x, 170 - 155 * y]);

  return () => {
    const { owner, halo, new: renamed } = partitions[method.value][parts.value];
    const isCut = ([u, v]) => owner[u] !== owner[v];
    const lines = edges
      .filter(([u, v]) => u < v)
      .sort((a, b) => isCut(a) - isCut(b))
      .map(([u, v]) => line(at[u], at[v], isCut([u, v]) ? "cut" : "faint"));
    const disks = at.map((p, i) => {
      const mark = disk(p, owner[i], `part-${owner[i]}${i === node.value ? " picked" : ""}`, 8.5);
      for (const child of mark.children) child.dataset.pick = i;
      return mark;
    });
    const title = (key) => html("th", { scope: "col" }, figure.say(key));
    const head = ["part", "nodes", "halo"].map(title);
    const body = halo.map((nodes, part) => {
      const swatch = html("i", { class: `part-${part}` });
      const own = owner.filter((each) => each === part).length;
      const cells = [own, nodes.length].map((n) => html("td", {}, number(n)));
      return html("tr", {}, html("th", { scope: "row" }, swatch, String(part)), ...cells);
    });
    const copies = count(halo.length).filter((part) => halo[part].includes(node.value));
    const values = {
      cut: number(edges.filter(isCut).length),
      edges: number(edges.length),
      copies: number(sum(halo.map((nodes) => nodes.length))),
      node: node.value,
      renamed: renamed[node.value],
      part: owner[node.value],
      where: copies.join(figure.say("comma")),
    };
    const more = figure.say(copies.length ? "copied" : "own", values);
    return {
      pictures: [
        picture(340, 340, figure.say("graph"), ...lines, ...disks),
        html("table", { class: "live-table" }, html("tr", {}, ...head), ...body),
      ],
      sentence: figure.say("all", { ...values, more }),
    };
  };
}

/** Lesson 07: who receives how much from whom, and the time of an epoch by machines and link. */
function traffic(figure, data) {
  const counts = [1, 2, 4, 8, 16, 32, 64];
  const kinds = ["compute", "sample", "fetch", "wait", "allreduce"];
  const machines = figure.slider("machines", counts, 4);
  const link = figure.slider("link", [0.1, 1, 10], 1, { show: (each) => `${each} Gbit/s` });
  const method = figure.choice("method", ["metis", "random"], "metis");
  const machine = figure.slider("machine", count(64), 0);
  figure.picks(machine);

  return () => {
    machine.limit(machines.value);
    const { kilobytes } = data[method.value][machines.value];
    const most = Math.max(1, ...kilobytes.flat());
    const side = 240 / kilobytes.length;
    const fields = kilobytes.flatMap((row, i) =>
      row.map((each, j) => {
        const size = { x: 40 + side * j, y: 34 + side * i, width: side, height: side };
        const field = svg("rect", { ...size, class: "field", "data-pick": i });
        field.style.fillOpacity = 0.04 + (0.96 * each) / most;
        return field;
      }),
    );
    const frame = { x: 40, y: 34 + side * machine.value, width: 240, height: side, class: "frame" };
    const matrix = picture(
      300,
      290,
      figure.say("matrix"),
      ...fields,
      svg("rect", frame),
      text(160, 14, figure.say("from"), { class: "name" }),
      text(14, 154, figure.say("to"), { class: "name", transform: "rotate(-90 14 154)" }),
    );
    const rows = counts.map((each) => [each, data[method.value][each].times[link.value]]);
    const row = kilobytes[machine.value];
    const giver = row.indexOf(Math.max(...row));
    const values = {
      machine: machine.value,
      received: bytes(sum(row)),
      giver,
      most: bytes(row[giver]),
      total: bytes(sum(kilobytes.flat())),
    };
    const parts = data[method.value][machines.value].times[link.value];
    const time = html("div", {}, html("p", { class: "name" }, figure.say("time")));
    time.append(bars(figure.say("time"), rows, kinds, machines.value, figure.say("ms")));
    time.append(legend(figure, kinds, parts, figure.say("ms")));
    return { pictures: [matrix, time], sentence: figure.say(sum(row) ? "asks" : "alone", values) };
  };
}

/** Lesson 10: the milliseconds of a step by the lesson's formula, term by term. */
function stepTime({ rows, remote, steps, hits }, constants, { machines, gbit, share, work }) {
  const { latency, overhead, per_request, per_byte, row, gradients, layers } = constants;
  const compute = 1000 * work * 1e-6 * (rows / steps);
  if (machines === 1) return { compute, requests: 0, features: 0, allreduce: 0 };
  const speed = Math.min((gbit * 1e9 * (1 - overhead)) / 8, 1 / per_byte);
  const missed = (remote / steps) * (1 - hits[share]);
  return {
    compute,
    requests: 1000 * layers * (2 * latency + (machines - 1) * per_request),
    features: (1000 * missed * (8 + row)) / speed,
    allreduce: 2000 * (machines - 1) * (gradients / machines / speed + latency),
  };
}

/** Lesson 10: the formula as a calculator. */
function cost(figure, { counts, constants, shares }) {
  const machines = figure.slider("machines", [1, 2, 4, 8], 4);
  const gbit = figure.slider("link", [0.1, 1, 2.5, 10, 25, 100], 1, { show: (n) => `${n} Gbit/s` });
  const fanout = figure.slider("fanout", [5, 10, 15], 10);
  const percent = (each) => `${number(100 * each)}%`;
  const share = figure.slider("cache", count(shares.length), 0, {
    show: (i) => percent(shares[i]),
  });
  const work = figure.slider("work", [0.1, 0.25, 0.5, 1, 2, 4], 1, { show: (n) => `${n} µs` });
  const method = figure.choice("method", ["metis", "random"], "random");
  const kinds = ["compute", "requests", "features", "allreduce"];

  return () => {
    const counted = (k) => counts[method.value][k][fanout.value];
    const times = (k) =>
      stepTime(counted(k), constants, {
        machines: k,
        gbit: gbit.value,
        share: share.value,
        work: work.value,
      });
    const total = (k) => sum(Object.values(times(k)));
    const k = machines.value;
    const { rows, remote, steps, hits } = counted(k);
    const node = html("div", {}, html("p", { class: "name" }, figure.say("time")));
    node.append(
      bars(
        figure.say("time"),
        [1, 2, 4, 8].map((each) => [each, times(each)]),
        kinds,
        k,
        figure.say("ms"),
      ),
    );
    const values = {
      machines: k,
      nodes: number(rows / steps),
      remote: percent(remote / rows),
      hits: percent(hits[share.value]),
      faster: number(total(1) / total(k), 2),
      total: number(total(k), 1),
    };
    return {
      pictures: [node, legend(figure, kinds, times(k), figure.say("ms"))],
      sentence: figure.say(k === 1 ? "alone" : "reads", values),
    };
  };
}

for (const root of document.querySelectorAll(".live")) {
  const { data, words } = JSON.parse(document.getElementById(root.dataset.figure).textContent);
  const figure = new Figure(root, words);
  figure.draw = { growth, cut, traffic, cost }[root.dataset.figure](figure, data);
  figure.redraw();
}
