// What the visualizer shows: the newest picture, and the films.

import { $, element, grouped, score, short } from "./words.js";

/** The pictures of one run. */
export class Watch {
  constructor(id) {
    this.base = `runs/${encodeURIComponent(id)}`;
    this.shown = 0;
    this.films = null;
    this.showPicture(null);
    this.showFilms([]);
  }

  showPicture(picture) {
    $("live").hidden = picture === null;
    $("watch").hidden = picture === null && (this.films ?? []).length === 0;
    if (picture === null || picture.version === this.shown || this.loading) return;
    this.shown = picture.version;
    // The next one is asked for when this one is there.
    this.loading = true;
    const image = $("picture");
    image.onload = image.onerror = () => (this.loading = false);
    image.src = `${this.base}/picture?${picture.version}`;
    const kind = picture.drawn_as_bars ? "what it observes, since the environment draws nothing; " : "";
    $("caption").textContent = `${kind}step ${grouped(picture.episode_steps)}, return ${score(picture.episode_return)}, with ${short(picture.updates)} updates`;
  }

  showFilms(names) {
    if (JSON.stringify(names) === JSON.stringify(this.films)) return;
    this.films = names;
    $("films-card").hidden = names.length === 0;
    $("watch").hidden = names.length === 0 && $("live").hidden;
    $("films").replaceChildren(...names.map((name) => this.film(name)));
  }

  film(name) {
    const [, steps, score, ending] = /^step0*(\d+)-return(.*)\.(gif|mp4)$/.exec(name) ?? [null, "?", "?"];
    const src = `${this.base}/films/${encodeURIComponent(name)}`;
    const playing = { src, preload: "none", loop: true, muted: true, playsInline: true, controls: true, title: name };
    const film = ending === "mp4" ? element("video", playing) : element("img", { src, loading: "lazy", alt: name });
    return element("figure", {}, film, element("figcaption", {}, `return ${score} at ${short(Number(steps))} steps`));
  }
}
