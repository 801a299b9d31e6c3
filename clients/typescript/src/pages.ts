/** A list that is read page by page, as far as somebody asks. */

export interface Page<Item> {
  results: Item[];
  /** Where the next page begins; null after the last. */
  next_cursor: string | null;
}

/**
 * `for await (const item of list)` reads a page when the one before is used up, so a list of any length takes the memory
 * of one page. Each loop begins anew. Rows that come or go meanwhile shift nothing.
 */
export class Pages<Item> implements AsyncIterable<Item> {
  readonly #fetch: (cursor: string | null) => Promise<Page<Item>>;

  constructor(fetch: (cursor: string | null) => Promise<Page<Item>>) {
    this.#fetch = fetch;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    for await (const page of this.pages()) yield* page.results;
  }

  /** The pages themselves. `cursor`: begin behind the page that had it as next_cursor. */
  async *pages(cursor: string | null = null): AsyncGenerator<Page<Item>, void, undefined> {
    let next = cursor;
    do {
      const page = await this.#fetch(next);
      yield page;
      next = page.next_cursor;
    } while (next !== null);
  }

  /** All of them, or the first `most`, at once. */
  async toArray(most = Infinity): Promise<Item[]> {
    const found: Item[] = [];
    if (most <= 0) return found;
    for await (const item of this) {
      found.push(item);
      if (found.length >= most) break;
    }
    return found;
  }

  /** The same as a stream of the Web, which reads no faster than it is read. */
  toStream(): ReadableStream<Item> {
    const items = this[Symbol.asyncIterator]();
    return new ReadableStream<Item>(
      {
        async pull(controller) {
          const { value, done } = await items.next();
          if (done) controller.close();
          else controller.enqueue(value);
        },
        async cancel() {
          await items.return();
        },
      },
      { highWaterMark: 0 },
    );
  }
}
