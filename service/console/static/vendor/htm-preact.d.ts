/** What the console uses of Preact and htm, for the type checker. */
export declare function html(strings: TemplateStringsArray, ...values: any[]): any;
export declare function render(tree: any, parent: Element | null): void;
export declare function createContext(value: any): any;
export declare function useContext(context: any): any;
export declare function useState(first?: any): [any, (next: any) => void];
export declare function useEffect(run: () => any, inputs?: any[]): void;
export declare function useLayoutEffect(run: () => any, inputs?: any[]): void;
export declare function useRef(first?: any): { current: any };
