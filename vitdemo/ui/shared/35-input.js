// The picture in the page's input, by its address; empty where there is none.
const inputNow = () => document.querySelector("#vd-picture img")?.src ?? "";
