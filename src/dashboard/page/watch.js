// What the visualizer shows: the newest picture, and the videos.

import { $, element, grouped, score, short } from "./words.js";

/** The pictures of one run. */
export class Watch {
  constructor(id) {
    this.base = `runs/${encodeURIComponent(id)}`;
    this.shown = 0;
    this.videos = null;
    this.showPicture(null);
    this.showVideos([]);
  }

  showPicture(picture) {
    $("live").hidden = picture === null;
    $("watch").hidden = picture === null && (this.videos ?? []).length === 0;
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

  showVideos(videos) {
    if (JSON.stringify(videos) === JSON.stringify(this.videos)) return;
    this.videos = videos;
    $("videos-card").hidden = videos.length === 0;
    $("watch").hidden = videos.length === 0 && $("live").hidden;
    $("videos").replaceChildren(...videos.map((video) => this.video(video)));
  }

  video({ name, env_steps, episode_return }) {
    const src = `${this.base}/videos/${encodeURIComponent(name)}`;
    const playing = { src, preload: "none", loop: true, muted: true, playsInline: true, controls: true, title: name };
    const shown = name.endsWith(".mp4") ? element("video", playing) : element("img", { src, loading: "lazy", alt: name });
    return element("figure", {}, shown, element("figcaption", {}, `return ${score(episode_return)} at ${short(env_steps)} steps`));
  }
}
