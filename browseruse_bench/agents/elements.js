({
  // Elements are those of the top document. Runs in an isolated world.
  isShown(element) {
    return (
      element.getClientRects().length > 0 && element.checkVisibility({ visibilityProperty: true })
    );
  },

  byCss(css, nth) {
    return [...document.querySelectorAll(css)].filter(this.isShown)[nth] ?? null;
  },

  // The innermost shown elements whose text is (or contains) the wanted text; a field counts
  // by its placeholder, a button that is an input by its value.
  byText(wanted, exact, nth) {
    const tidy = (text) => text.replace(/\s+/g, ' ').trim();
    const dense = (text) => text.replace(/\s+/g, '').toLowerCase();
    const want = tidy(wanted);
    const matches = (texts) =>
      texts.some((text) => (exact ? tidy(text) === want : tidy(text).includes(want)));
    const found = [];
    const visit = (element) => {
      if (!dense(element.textContent).includes(dense(want))) return false;
      let inside = false;
      for (const child of element.children) inside = visit(child) || inside;
      if (inside) return true;
      // innerText is as the styles show it (upper case, for instance), textContent as written.
      if (!this.isShown(element)) return false;
      if (!matches([element.innerText ?? '', element.textContent])) return false;
      found.push(element);
      return true;
    };
    visit(document.documentElement);
    for (const field of document.querySelectorAll('input, textarea')) {
      const named = ['submit', 'button', 'reset'].includes(field.type) ? field.value : field.placeholder;
      if (named && matches([named]) && this.isShown(field)) found.push(field);
    }
    found.sort((a, b) => (a.compareDocumentPosition(b) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1));
    return found[nth] ?? null;
  },

  // Where to click, after scrolling there: {x, y}; or {why} not.
  place(element) {
    if (!element.isConnected) return { why: 'it has left the page' };
    if (element.matches(':disabled')) return { why: 'it is disabled' };
    const box = () => [...element.getClientRects()].find((r) => r.width > 0 && r.height > 0);
    const at = box();
    if (!at) return { why: 'it is not shown' };
    const middle = (from, to, size) => (Math.max(from, 0) + Math.min(to, size)) / 2;
    const click = ({ left, right, top, bottom }) => {
      const x = middle(left, right, innerWidth);
      const y = middle(top, bottom, innerHeight);
      const hit = element.getRootNode().elementFromPoint(x, y);
      if (hit && this.reaches(element, hit)) return { x, y };
      const name = hit ? hit.localName + (hit.id ? `#${hit.id}` : '') : 'nothing';
      return { why: `it is covered by <${name}>` };
    };
    if (at.top < 0 || at.left < 0 || at.bottom > innerHeight || at.right > innerWidth) {
      element.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' });
      return click(box());
    }
    const place = click(at);
    if (!place.why) return place;
    // A box inside the page may have scrolled it away; what is in sight does not move.
    element.scrollIntoView({ block: 'nearest', inline: 'nearest', behavior: 'instant' });
    return click(box());
  },

  // Whether a click whose innermost element is `hit` is one on `element`.
  reaches(element, hit) {
    return (
      element.contains(hit) ||
      hit.closest('label')?.control === element ||
      (hit.contains(element) && getComputedStyle(element).pointerEvents === 'none')
    );
  },

  // `place`, and what to do with the press that comes there: one that would reach something
  // else, because the page moved in between, is swallowed whole. `struck` tells which it was.
  aim(element) {
    const at = this.place(element);
    if (at.why) return at;
    const hosts = []; // A press inside a shadow root may be told as one on its host.
    for (let e = element; e; e = e.getRootNode().host) hosts.push(e);
    const aim = { reached: null };
    const hear = (event) => {
      if (!event.isTrusted) return;
      const hit = event.composedPath()[0];
      aim.reached ??= hit instanceof Element && hosts.some((e) => this.reaches(e, hit));
      if (aim.reached) return;
      event.preventDefault();
      event.stopImmediatePropagation();
    };
    const types = ['pointerdown', 'mousedown', 'pointerup', 'mouseup', 'click'];
    for (const type of types) addEventListener(type, hear, true);
    aim.end = () => types.forEach((type) => removeEventListener(type, hear, true));
    globalThis.bubenchAim?.end();
    globalThis.bubenchAim = aim; // of the isolated world: the page does not see it
    return at;
  },

  // {} once the press was done at `aim`; or {why} it was swallowed. A press that was not heard,
  // as in a frame, counts as done.
  struck() {
    const aim = globalThis.bubenchAim;
    aim?.end();
    return aim?.reached === false ? { why: 'it moved away from under the mouse' } : {};
  },

  // Puts the focus and the selection where text is to go: {}; {set: true} if the value was
  // set because such a field takes no typed text; or {why} not.
  prepare(element, text, clear) {
    const isField = (e) => e instanceof HTMLInputElement || e instanceof HTMLTextAreaElement;
    if (element instanceof HTMLLabelElement && element.control) element = element.control;
    const active = document.activeElement;
    if (!isField(element) && !element.isContentEditable && active) {
      if (!isField(active) && !active.isContentEditable) return { why: 'it takes no text' };
      element = active;
    }
    if (element.readOnly) return { why: 'it is read-only' };
    element.focus();
    const picked = ['date', 'time', 'month', 'week', 'datetime-local', 'color', 'range'];
    if (isField(element) && picked.includes(element.type)) {
      element.value = text;
      if (element.value !== text) return { why: `a field of type ${element.type} does not take '${text}'` };
      this.tell(element);
      return { set: true };
    }
    if (isField(element)) {
      if (clear) element.select();
      else if (element.selectionEnd !== null) element.setSelectionRange(element.value.length, element.value.length);
      return { empty: element.value === '' };
    }
    const selection = getSelection();
    selection.selectAllChildren(element);
    if (!clear) selection.collapseToEnd();
    return { empty: element.textContent === '' };
  },

  // Chooses an option by its label or value: {}; or {why} not.
  choose(element, wanted) {
    if (element instanceof HTMLLabelElement && element.control) element = element.control;
    if (!(element instanceof HTMLSelectElement)) return { why: 'it is not a select element' };
    if (element.disabled) return { why: 'it is disabled' };
    const tidy = (text) => text.replace(/\s+/g, ' ').trim();
    const options = [...element.options];
    const option =
      options.find((o) => tidy(o.label) === tidy(wanted)) ?? options.find((o) => o.value === wanted);
    if (!option || option.disabled) {
      const all = options.map((o) => tidy(o.label)).join(', ').slice(0, 200);
      return { why: `it has no option '${wanted}' that can be chosen, but: ${all}` };
    }
    element.focus();
    option.selected = true;
    this.tell(element);
    return {};
  },

  tell(element) {
    for (const type of ['input', 'change']) {
      element.dispatchEvent(new Event(type, { bubbles: true, composed: type === 'input' }));
    }
  },

  // The text of the nth match, shown or not, a field's value for a field; null without one.
  read(css, nth) {
    const element = document.querySelectorAll(css)[nth];
    if (!element) return null;
    if (element instanceof HTMLSelectElement) return element.selectedOptions[0]?.label ?? '';
    if (element instanceof HTMLInputElement || element instanceof HTMLTextAreaElement) return element.value;
    return (element.innerText ?? element.textContent).trim();
  },

  // What a scroll moves: the document and whatever scrolls in the middle of the window.
  scrolled() {
    const offsets = [scrollX, scrollY];
    let element = document.elementFromPoint(innerWidth / 2, innerHeight / 2);
    for (; element; element = element.parentElement) offsets.push(element.scrollTop);
    return { x: innerWidth / 2, y: innerHeight / 2, offsets: offsets.join() };
  },
})
