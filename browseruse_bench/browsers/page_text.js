(() => {
  // Getters are taken from the prototypes: an element named "body" or "title" hides the
  // document's own property of that name, in every world.
  const getter = (type, name) => {
    const get = Object.getOwnPropertyDescriptor(type.prototype, name).get;
    return (object) => get.call(object);
  };
  const bodyOf = getter(Document, 'body');
  const titleOf = getter(Document, 'title');
  const visibilityOf = getter(Document, 'visibilityState');
  const textOf = getter(HTMLElement, 'innerText');
  const shadowOf = getter(Element, 'shadowRoot');
  const isShown = (element) =>
    Element.prototype.checkVisibility.call(element, { visibilityProperty: true });
  const inDocument = Document.prototype.querySelectorAll;
  const inShadow = DocumentFragment.prototype.querySelectorAll;
  const parts = [];

  const readShadow = (root) => {
    for (const node of root.childNodes) {
      if (node.nodeType === Node.TEXT_NODE) parts.push(node.data);
      else if (node.namespaceURI === 'http://www.w3.org/1999/xhtml' && isShown(node)) parts.push(textOf(node));
    }
    readInside(inShadow.call(root, '*'));
  };
  const readInside = (elements) => {
    for (const element of elements) {
      const shadow = shadowOf(element);
      if (shadow) {
        if (isShown(element)) readShadow(shadow);
      } else if (/^i?frame$/i.test(element.localName) && element.getClientRects().length && isShown(element)) {
        // Null for a frame of another origin.
        const inner = element.contentDocument;
        if (inner) readDocument(inner);
      }
    }
  };
  const readDocument = (doc) => {
    const body = bodyOf(doc);
    if (body) parts.push(textOf(body));
    readInside(inDocument.call(doc, '*'));
  };

  readDocument(document);
  const text = parts.map((part) => part.trim()).filter(Boolean).join('\n').toWellFormed();
  return {
    url: location.href,
    title: titleOf(document),
    visible: visibilityOf(document) === 'visible',
    n_chars: text.length,
    text: text.slice(0, MAX_CHARS).toWellFormed(),
  };
})()
