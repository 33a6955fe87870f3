// The pictures of the visualizer: the newest one, and the videos.

import { place } from "./keep.js";
import { $, element, grouped, score, short } from "./words.js";

/** The pictures of one run. */
export class Watch {
  constructor(id) {
    this.base = `runs/${encodeURIComponent(id)}`;
    this.shown = 0;
    this.videos = new Map();
    $("videos").replaceChildren();
    // The picture of the run before would stay until this run has one.
    $("picture").removeAttribute("src");
    $("caption").textContent = "";
    this.showPicture(null);
    this.showVideos([]);
  }

  showPicture(picture) {
    $("live").hidden = picture === null;
    $("watch").hidden = picture === null && this.videos.size === 0;
    if (picture === null || picture.version === this.shown || this.loading) return;
    this.shown = picture.version;
    // The next picture is asked for when this one has arrived.
    this.loading = true;
    const image = $("picture");
    image.onerror = () => (this.loading = false);
    image.onload = () => {
      this.loading = false;
      const kind = picture.drawn_as_bars ? "what it observes, since the environment draws nothing; " : "";
      $("caption").textContent = `${kind}step ${grouped(picture.episode_steps)}, return ${score(picture.episode_return)}, with ${short(picture.updates)} updates`;
    };
    image.src = `${this.base}/picture?${picture.version}`;
  }

  /** Shows the videos, the newest first. Those on view stay as they are, since the user may be watching one. */
  showVideos(videos) {
    const figures = new Map(videos.map((video) => [video.name, this.videos.get(video.name) ?? this.video(video)]));
    place($("videos"), [...figures.values()]);
    this.videos = figures;
    $("videos-card").hidden = videos.length === 0;
    $("watch").hidden = videos.length === 0 && $("live").hidden;
  }

  video({ name, env_steps, episode_return }) {
    const src = `${this.base}/videos/${encodeURIComponent(name)}`;
    const playing = { preload: "none", loop: true, muted: true, playsInline: true, controls: true, title: name, src };
    // `preload` and `loading` come before the address: some browsers fetch at once what does not say yet that it waits.
    const shown = name.endsWith(".mp4") ? element("video", playing) : element("img", { loading: "lazy", alt: name, src });
    return element("figure", {}, shown, element("figcaption", {}, `return ${score(episode_return)} at ${short(env_steps)} steps`));
  }
}
