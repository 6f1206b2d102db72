"use strict";
// A button with data-closes hides the layer it is in and remembers the choice in a cookie.
for (const button of document.querySelectorAll("button[data-closes]")) {
  button.addEventListener("click", () => {
    document.cookie = `${button.dataset.closes}=${button.dataset.choice}; path=/; SameSite=Lax`;
    button.closest(".cover").remove();
  });
}
for (const form of document.querySelectorAll("form[data-confirm]")) {
  form.addEventListener("submit", (event) => {
    if (!window.confirm(form.dataset.confirm)) event.preventDefault();
  });
}
// Going back shows the shop as it is now, not as it was.
window.addEventListener("pageshow", (event) => {
  if (event.persisted) window.location.reload();
});
