// Notes and tags: on the trials that are selected, or, where none is, on the study. They need no driver.

function remarkForm(parent, store, own) {
  const head = make("h4", "", parent);
  const box = make("div", "wb-remarks", parent);
  const chips = make("div", "wb-chips", box);
  const list = make("ul", "wb-notes", box);
  const chosen = () => [...own.selected].map((n) => store.trials.get(n)).filter(Boolean);
  const targets = () => (chosen().length ? chosen() : [{ trial: null, ...store.now }]);
  const entry = (action, words) => {
    const input = make("input", "", box);
    Object.assign(input, { type: "text", placeholder: words, spellcheck: false });
    input.setAttribute("aria-label", words);
    input.onkeydown = (event) => {
      const words = input.value.trim();
      if (event.key !== "Enter" || !words) return;
      const putBack = () => (input.value ||= words); // refused, it is there to be corrected
      for (const { trial } of targets()) store.wish(action, { trial, words }, putBack);
      input.value = "";
    };
    return input;
  };
  const inputs = [entry("tag", "add a tag"), entry("note", "add a note")];
  const shown = whenChanged((whose, tags, notes, silent) => {
    head.textContent = `Notes on ${whose}`;
    chips.replaceChildren();
    for (const tag of tags) {
      const untag = () => {
        for (const target of targets()) if (target.tags.includes(tag)) store.wish("untag", { trial: target.trial, words: tag });
      };
      button(chips, `${tag} ×`, `take the tag ${tag} off`, untag, "wb-chip").disabled = silent;
    }
    list.replaceChildren();
    for (const { text, at_s, by } of notes) {
      const line = make("li", "", list, text);
      line.title = `${by}, at ${duration(at_s)} of the study's time`;
    }
    for (const input of inputs) input.disabled = silent;
  });
  return () => {
    const all = targets();
    const whose = all[0].trial === null ? "the study" : all.length === 1 ? `trial ${all[0].trial}` : `${all.length} trials`;
    shown(whose, [...new Set(all.flatMap((t) => t.tags))], all.length === 1 ? all[0].notes : [], store.silent);
  };
}
