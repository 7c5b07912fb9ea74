// Is the line alive? The server sends a packet every 20 ms for as long as a call lives, also in silence. No DOM.

export const SILENT_S = 1.0; // without a packet: say so, ask the server
export const GIVE_UP_S = 6.0; // without a packet: the call is over, although the server lives

export class LineWatch {
  #numPackets = 0;
  #lookedS;
  #packetS; // when the last packet came, as far as looking now and then can tell

  constructor(nowS) {
    this.#lookedS = nowS;
    this.#packetS = nowS;
  }

  // "alive", "silent" or "dead"
  look(nowS, numPackets) {
    if (numPackets !== this.#numPackets) {
      this.#numPackets = numPackets;
      this.#packetS = (this.#lookedS + nowS) / 2; // between two looks: half way is off by the least
    }
    this.#lookedS = nowS;
    const silentS = nowS - this.#packetS;
    if (silentS >= GIVE_UP_S) return "dead";
    return silentS >= SILENT_S ? "silent" : "alive";
  }
}
