"use strict";
// Loaded before the page's body, so that whatever can be clicked already works.
// A button with data-closes hides the layer it is in and remembers the choice in a cookie.
document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-closes]");
  if (!button) return;
  document.cookie = `${button.dataset.closes}=${button.dataset.choice}; path=/; SameSite=Lax`;
  button.closest(".cover").remove();
});
document.addEventListener("submit", (event) => {
  const question = event.target.dataset.confirm;
  if (question && !window.confirm(question)) event.preventDefault();
});
// Going back shows the shop as it is now, not as it was.
window.addEventListener("pageshow", (event) => {
  if (event.persisted) window.location.reload();
});
